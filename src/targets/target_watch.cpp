#include "targets/target_watch.hpp"

#include "base/file.hpp"
#include "procfs/stat.hpp"
#include "pyinject/base/deadline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pyinject::targets {

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

void TargetWatch::add(base::ProcessId id) {
  base::UniqueFd pidfd{static_cast<int>(::syscall(SYS_pidfd_open, id.pid.value(), 0))};
  if (!pidfd.valid()) {
    base::throw_if_short(fmt::format("cannot watch pid {}", id.pid.value()));
  }
  // The pid may have been reused since it was looked up; the pidfd refers to a fixed process.
  if (procfs::read_process_id(id.pid) != id) {
    pidfd.reset();
  }
  targets_.push_back({id, std::move(pidfd)});
}

bool TargetWatch::all_exited() const {
  return std::ranges::none_of(targets_, [](const Watched& one) { return one.pidfd.valid(); });
}

std::vector<base::Pid> TargetWatch::running() const {
  std::vector<base::Pid> pids;
  for (const auto& one : targets_) {
    if (one.pidfd.valid()) {
      pids.push_back(one.id.pid);
    }
  }
  return pids;
}

bool TargetWatch::all_exited_within(std::chrono::milliseconds span) {
  const auto deadline = base::Deadline::after(span);
  while (true) {
    auto entries = poll_entries();
    ::poll(entries.data(), entries.size(), deadline.remaining_ms());
    update(entries);
    if (all_exited() || deadline.expired()) {
      return all_exited();
    }
  }
}

std::vector<pollfd> TargetWatch::poll_entries() const {
  std::vector<pollfd> entries;
  for (const auto& one : targets_) {
    if (one.pidfd.valid()) {
      entries.push_back({.fd = one.pidfd.get(), .events = POLLIN, .revents = 0});
    }
  }
  return entries;
}

void TargetWatch::update(const std::vector<pollfd>& entries) {
  for (const auto& entry : entries) {
    const auto found = std::ranges::find_if(
        targets_, [&](const Watched& one) { return one.pidfd.get() == entry.fd; });
    if (entry.revents != 0 && found != targets_.end()) {
      found->pidfd.reset();
    }
  }
}

}  // namespace pyinject::targets
