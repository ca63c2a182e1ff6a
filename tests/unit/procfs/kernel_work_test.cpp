#include "procfs/kernel_work.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

namespace pyinject::procfs {
namespace {

KernelWork work_of(std::initializer_list<std::string_view> functions) {
  return kernel_work(std::vector<std::string_view>{functions}).work;
}

TEST(KernelWork, IsThatOfTheFunctionThatTells) {
  EXPECT_EQ(work_of({"__schedule", "schedule", "futex_wait_queue", "do_futex"}),
            KernelWork::kFutex);
  EXPECT_EQ(work_of({"schedule", "do_nanosleep", "hrtimer_nanosleep"}), KernelWork::kSleep);
  EXPECT_EQ(work_of({"schedule", "schedule_timeout", "inet_csk_accept", "inet_accept"}),
            KernelWork::kAccept);
  EXPECT_EQ(work_of({"wait_woken", "sk_wait_data", "tcp_recvmsg_locked"}), KernelWork::kNetwork);
  EXPECT_EQ(work_of({"schedule", "do_epoll_wait"}), KernelWork::kPoll);
  EXPECT_EQ(work_of({"schedule", "anon_pipe_read", "vfs_read"}), KernelWork::kPipe);
  EXPECT_EQ(work_of({"schedule", "do_wait", "kernel_wait4"}), KernelWork::kChild);
  EXPECT_EQ(work_of({"io_schedule", "folio_wait_bit", "ext4_sync_file"}), KernelWork::kDisk);
  EXPECT_EQ(work_of({"__schedule", "exit_to_user_mode_loop"}), KernelWork::kUnknown);
  EXPECT_EQ(work_of({}), KernelWork::kUnknown);
}

TEST(KernelWork, APageFaultComesBeforeTheFileThatItReads) {
  EXPECT_EQ(work_of({"io_schedule", "filemap_fault", "handle_mm_fault", "exc_page_fault"}),
            KernelWork::kFault);
  EXPECT_EQ(work_of({"io_schedule", "do_swap_page", "handle_mm_fault", "exc_page_fault"}),
            KernelWork::kSwap);
}

TEST(KernelWork, APollOfSocketsIsAPoll) {
  EXPECT_EQ(work_of({"tcp_poll", "sock_poll", "do_sys_poll"}), KernelWork::kPoll);
}

TEST(KernelWork, NamesTheFunction) {
  const std::vector<std::string_view> functions{"schedule", "futex_wait_queue", "do_futex"};
  EXPECT_EQ(kernel_work(functions).function, 1);
}

}  // namespace
}  // namespace pyinject::procfs
