#include "procfs/kernel_work.hpp"

#include <algorithm>
#include <array>

namespace pyinject::procfs {

namespace {

using sample::Use;

struct Rule {
  std::string_view part;  // of the function's name
  Use use;
};

// In order: the first rule that matches any function wins. A page fault may wait for a file, a file
// may lie on a network, and poll(2) has functions of the files that it asks.
constexpr auto kRules = std::to_array<Rule>({
    {"do_swap_page", Use::kSwap},
    {"swapin_", Use::kSwap},
    {"swap_read", Use::kSwap},
    {"exc_page_fault", Use::kFault},
    {"do_user_addr_fault", Use::kFault},
    {"handle_mm_fault", Use::kFault},
    {"faultin_page", Use::kFault},
    {"futex_wait", Use::kFutex},
    {"futex_lock", Use::kFutex},
    {"ep_poll", Use::kPoll},
    {"do_epoll_wait", Use::kPoll},
    {"do_sys_poll", Use::kPoll},
    {"do_poll", Use::kPoll},
    {"do_select", Use::kPoll},
    {"io_cqring_wait", Use::kPoll},
    {"do_nanosleep", Use::kSleep},
    {"hrtimer_nanosleep", Use::kSleep},
    {"clock_nanosleep", Use::kSleep},
    {"csk_accept", Use::kClient},
    {"unix_accept", Use::kClient},
    {"do_accept", Use::kClient},
    {"sys_accept", Use::kClient},
    {"tcp_", Use::kNetwork},
    {"udp_", Use::kNetwork},
    {"inet_", Use::kNetwork},
    {"unix_stream_", Use::kNetwork},
    {"unix_dgram_", Use::kNetwork},
    {"sk_wait_data", Use::kNetwork},
    {"__skb_", Use::kNetwork},
    {"sock_", Use::kNetwork},
    {"sys_recv", Use::kNetwork},
    {"sys_send", Use::kNetwork},
    {"sys_connect", Use::kNetwork},
    {"pipe_read", Use::kPipe},
    {"pipe_write", Use::kPipe},
    {"fifo_open", Use::kPipe},
    {"do_wait", Use::kChild},
    {"kernel_wait4", Use::kChild},
    {"vfork_done", Use::kChild},
    {"sigtimedwait", Use::kSignal},
    {"sigsuspend", Use::kSignal},
    {"sys_pause", Use::kSignal},
    {"io_schedule", Use::kDisk},
    {"folio_wait", Use::kDisk},
    {"submit_bio", Use::kDisk},
    {"blk_", Use::kDisk},
    {"fsync", Use::kDisk},
    {"fdatasync", Use::kDisk},
    {"jbd2_", Use::kDisk},
    {"ext4_", Use::kDisk},
    {"xfs_", Use::kDisk},
    {"btrfs_", Use::kDisk},
    {"nfs", Use::kDisk},
    {"fuse_", Use::kDisk},
    {"p9_", Use::kDisk},
    {"generic_file_", Use::kDisk},
    {"filemap_", Use::kDisk},
});

}  // namespace

KernelFinding kernel_work(std::span<const std::string_view> functions) {
  for (const auto& rule : kRules) {
    const auto found = std::ranges::find_if(functions, [&](std::string_view function) {
      return function.find(rule.part) != std::string_view::npos;
    });
    if (found != functions.end()) {
      return {.use = rule.use, .function = static_cast<std::size_t>(found - functions.begin())};
    }
  }
  return {};
}

}  // namespace pyinject::procfs
