#include "procfs/kernel_work.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

namespace pyinject::procfs {
namespace {

using sample::Use;

Use work_of(std::initializer_list<std::string_view> functions) {
  return kernel_work(std::vector<std::string_view>{functions}).use;
}

TEST(KernelWork, IsThatOfTheFunctionThatTells) {
  EXPECT_EQ(work_of({"__schedule", "schedule", "futex_wait_queue", "do_futex"}), Use::kFutex);
  EXPECT_EQ(work_of({"schedule", "do_nanosleep", "hrtimer_nanosleep"}), Use::kSleep);
  EXPECT_EQ(work_of({"schedule", "schedule_timeout", "inet_csk_accept", "inet_accept"}),
            Use::kClient);
  EXPECT_EQ(work_of({"wait_woken", "sk_wait_data", "tcp_recvmsg_locked"}), Use::kNetwork);
  EXPECT_EQ(work_of({"schedule", "do_epoll_wait"}), Use::kPoll);
  EXPECT_EQ(work_of({"schedule", "anon_pipe_read", "vfs_read"}), Use::kPipe);
  EXPECT_EQ(work_of({"schedule", "do_wait", "kernel_wait4"}), Use::kChild);
  EXPECT_EQ(work_of({"io_schedule", "folio_wait_bit", "ext4_sync_file"}), Use::kDisk);
  EXPECT_EQ(work_of({"__schedule", "exit_to_user_mode_loop"}), Use::kUnknown);
  EXPECT_EQ(work_of({}), Use::kUnknown);
}

TEST(KernelWork, APageFaultComesBeforeTheFileThatItReads) {
  EXPECT_EQ(work_of({"io_schedule", "filemap_fault", "handle_mm_fault", "exc_page_fault"}),
            Use::kFault);
  EXPECT_EQ(work_of({"io_schedule", "do_swap_page", "handle_mm_fault", "exc_page_fault"}),
            Use::kSwap);
}

TEST(KernelWork, APollOfSocketsIsAPoll) {
  EXPECT_EQ(work_of({"tcp_poll", "sock_poll", "do_sys_poll"}), Use::kPoll);
}

TEST(KernelWork, NamesTheFunction) {
  const std::vector<std::string_view> functions{"schedule", "futex_wait_queue", "do_futex"};
  EXPECT_EQ(kernel_work(functions).function, 1);
}

}  // namespace
}  // namespace pyinject::procfs
