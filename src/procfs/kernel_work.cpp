#include "procfs/kernel_work.hpp"

#include <algorithm>
#include <array>

namespace pyinject::procfs {

namespace {

struct Rule {
  std::string_view part;  // of the function's name
  KernelWork work;
};

// In order: the first rule that matches any function wins. A page fault may wait for a file, a file
// may lie on a network, and poll(2) has functions of the files that it asks.
constexpr auto kRules = std::to_array<Rule>({
    {"do_swap_page", KernelWork::kSwap},
    {"swapin_", KernelWork::kSwap},
    {"swap_read", KernelWork::kSwap},
    {"exc_page_fault", KernelWork::kFault},
    {"do_user_addr_fault", KernelWork::kFault},
    {"handle_mm_fault", KernelWork::kFault},
    {"faultin_page", KernelWork::kFault},
    {"futex_wait", KernelWork::kFutex},
    {"futex_lock", KernelWork::kFutex},
    {"ep_poll", KernelWork::kPoll},
    {"do_epoll_wait", KernelWork::kPoll},
    {"do_sys_poll", KernelWork::kPoll},
    {"do_poll", KernelWork::kPoll},
    {"do_select", KernelWork::kPoll},
    {"io_cqring_wait", KernelWork::kPoll},
    {"do_nanosleep", KernelWork::kSleep},
    {"hrtimer_nanosleep", KernelWork::kSleep},
    {"clock_nanosleep", KernelWork::kSleep},
    {"csk_accept", KernelWork::kAccept},
    {"unix_accept", KernelWork::kAccept},
    {"do_accept", KernelWork::kAccept},
    {"sys_accept", KernelWork::kAccept},
    {"tcp_", KernelWork::kNetwork},
    {"udp_", KernelWork::kNetwork},
    {"inet_", KernelWork::kNetwork},
    {"unix_stream_", KernelWork::kNetwork},
    {"unix_dgram_", KernelWork::kNetwork},
    {"sk_wait_data", KernelWork::kNetwork},
    {"__skb_", KernelWork::kNetwork},
    {"sock_", KernelWork::kNetwork},
    {"sys_recv", KernelWork::kNetwork},
    {"sys_send", KernelWork::kNetwork},
    {"sys_connect", KernelWork::kNetwork},
    {"pipe_read", KernelWork::kPipe},
    {"pipe_write", KernelWork::kPipe},
    {"fifo_open", KernelWork::kPipe},
    {"do_wait", KernelWork::kChild},
    {"kernel_wait4", KernelWork::kChild},
    {"vfork_done", KernelWork::kChild},
    {"sigtimedwait", KernelWork::kSignal},
    {"sigsuspend", KernelWork::kSignal},
    {"sys_pause", KernelWork::kSignal},
    {"io_schedule", KernelWork::kDisk},
    {"folio_wait", KernelWork::kDisk},
    {"submit_bio", KernelWork::kDisk},
    {"blk_", KernelWork::kDisk},
    {"fsync", KernelWork::kDisk},
    {"fdatasync", KernelWork::kDisk},
    {"jbd2_", KernelWork::kDisk},
    {"ext4_", KernelWork::kDisk},
    {"xfs_", KernelWork::kDisk},
    {"btrfs_", KernelWork::kDisk},
    {"nfs", KernelWork::kDisk},
    {"fuse_", KernelWork::kDisk},
    {"p9_", KernelWork::kDisk},
    {"generic_file_", KernelWork::kDisk},
    {"filemap_", KernelWork::kDisk},
});

}  // namespace

KernelFinding kernel_work(std::span<const std::string_view> functions) {
  for (const auto& rule : kRules) {
    const auto found = std::ranges::find_if(functions, [&](std::string_view function) {
      return function.find(rule.part) != std::string_view::npos;
    });
    if (found != functions.end()) {
      return {.work = rule.work, .function = static_cast<std::size_t>(found - functions.begin())};
    }
  }
  return {};
}

}  // namespace pyinject::procfs
