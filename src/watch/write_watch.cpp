#include "write_watch.hpp"

#include "procfs/tasks.hpp"
#include "pyinject/base/error.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <span>
#include <utility>

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pyinject::watch {

namespace {

constexpr std::size_t kMostBreakpoints = 512;
constexpr std::size_t kMemory = std::size_t{2} * 4096;  // the minimum: one page is perf's own

// libperf can open events for a thread, too, but does not expose their descriptors.
base::UniqueFd open_breakpoint(base::Tid tid, std::uint64_t address) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_BREAKPOINT;
  attr.bp_type = HW_BREAKPOINT_W;
  attr.bp_addr = address;
  attr.bp_len = HW_BREAKPOINT_LEN_4;
  attr.sample_period = 1;
  attr.wakeup_events = 1;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  attr.disabled = 1;
  constexpr int kAnyProcessor = -1;
  constexpr int kNoGroup = -1;
  return base::UniqueFd{static_cast<int>(::syscall(SYS_perf_event_open, &attr, tid.value(),
                                                   kAnyProcessor, kNoGroup, PERF_FLAG_FD_CLOEXEC))};
}

}  // namespace

void WriteWatch::Breakpoint::Unmap::operator()(void* what) const { ::munmap(what, kMemory); }

bool WriteWatch::Breakpoint::hit() const {
  auto& head = static_cast<perf_event_mmap_page*>(memory.get())->data_head;
  return std::atomic_ref{head}.load(std::memory_order_acquire) != 0;
}

WriteWatch::WriteWatch() : epoll_{::epoll_create1(EPOLL_CLOEXEC)} {
  if (!epoll_.valid()) {
    throw base::SystemError{"epoll_create1", errno};
  }
}

bool WriteWatch::add_thread(base::Pid pid, base::Tid tid, std::uint64_t address,
                            std::vector<Breakpoint>& all) {
  Breakpoint one;
  one.fd = open_breakpoint(tid, address);
  if (!one.fd.valid()) {
    return false;
  }
  void* const memory =
      ::mmap(nullptr, kMemory, PROT_READ | PROT_WRITE, MAP_SHARED, one.fd.get(), 0);
  if (memory == MAP_FAILED) {
    return false;
  }
  one.memory.reset(memory);
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  wanted.data.fd = pid.value();
  // Only one write is reported: the breakpoint costs the thread a single exception.
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, one.fd.get(), &wanted) != 0 ||
      ::ioctl(one.fd.get(), PERF_EVENT_IOC_REFRESH, 1) != 0) {
    return false;
  }
  all.push_back(std::move(one));
  return true;
}

bool WriteWatch::add(base::Pid pid, std::uint64_t address) {
  drop(pid);
  const auto tids = procfs::list_tasks(pid);
  if (tids.empty() || count_ + tids.size() > kMostBreakpoints) {
    return false;
  }
  std::vector<Breakpoint> all;
  for (const auto tid : tids) {
    if (!add_thread(pid, tid, address, all)) {
      return false;
    }
  }
  count_ += all.size();
  breakpoints_.emplace(pid.value(), std::move(all));
  return true;
}

void WriteWatch::drop(base::Pid pid) {
  const auto found = breakpoints_.find(pid.value());
  if (found != breakpoints_.end()) {
    count_ -= found->second.size();
    breakpoints_.erase(found);
  }
}

std::vector<base::Pid> WriteWatch::taken() {
  std::vector<base::Pid> written;
  if (breakpoints_.empty()) {
    return written;
  }
  // perf_poll() reports readiness once: what epoll returns here is not reported again. So poll
  // first and read the records next; a later write is reported by the next poll.
  std::array<epoll_event, 64> ready{};
  const int count = ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), 0);
  for (const auto& [pid, all] : breakpoints_) {
    if (std::any_of(all.begin(), all.end(), [](const Breakpoint& one) { return one.hit(); })) {
      written.emplace_back(pid);
    }
  }
  // The exit of a thread stays ready. If the process has other threads, not all of them are watched
  // any more.
  for (const auto& one : std::span{ready}.first(static_cast<std::size_t>(std::max(count, 0)))) {
    const auto found = breakpoints_.find(one.data.fd);
    if (found == breakpoints_.end() || (one.events & EPOLLHUP) == 0) {
      continue;
    }
    const base::Pid pid{one.data.fd};
    if (std::find(written.begin(), written.end(), pid) != written.end()) {
      continue;
    }
    if (found->second.size() > 1) {
      written.push_back(pid);
    }
    drop(pid);
  }
  for (const auto pid : written) {
    drop(pid);
  }
  return written;
}

}  // namespace pyinject::watch
