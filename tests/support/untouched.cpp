#include "support/untouched.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "procfs/maps.hpp"
#include "procfs/tasks.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"
#include "support/asleep.hpp"
#include "support/patience.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <sched.h>
#include <sys/uio.h>

namespace pyinject::test {

namespace {

std::string of_thread(base::Pid pid, base::Tid tid) {
  const auto directory = fmt::format("/proc/{}/task/{}/", pid.value(), tid.value());
  const auto status = base::read_file(directory + "status").value_or("");
  if (status.find("State:\tD") != std::string::npos) {
    return "running";  // temporary: until the kernel has read from disk
  }
  std::string text{base::trim(base::read_file(directory + "syscall").value_or("unknown call"))};
  for (const auto line : base::split(status, '\n')) {
    if (line.find("ctxt_switches") != std::string_view::npos) {
      text += fmt::format(", {}", line);
    }
  }
  return text;
}

std::string read(base::Pid pid, const procfs::Mapping& mapping) {
  std::string content(mapping.size(), '\0');
  const iovec local{.iov_base = content.data(), .iov_len = content.size()};
  const iovec remote{.iov_base = reinterpret_cast<void*>(mapping.begin.value()),
                     .iov_len = content.size()};
  const ssize_t got = ::process_vm_readv(pid.value(), &local, 1, &remote, 1, 0);
  content.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return content;
}

}  // namespace

Untouched::Untouched(base::Pid pid, bool shared) : pid_{pid}, shared_{shared} {
  // The kernel offers no event for that.
  const auto deadline = base::Deadline::after(kPatience);
  int seen = 0;
  while (seen < 3) {
    if (deadline.expired()) {
      throw base::Error{fmt::format("process {} does not come to rest", pid.value())};
    }
    auto now = threads();
    const bool still = std::ranges::all_of(now, [pid](const auto& one) {
      return !one.second.starts_with("running") && at_rest(pid, one.first);
    });
    seen = still && now == threads_ ? seen + 1 : 0;
    threads_ = std::move(now);
    ::sched_yield();
  }
  snapshot_ = take_snapshot(pid);
  memory_ = memory();
}

Untouched::Threads Untouched::threads() const {
  Threads result;
  for (const auto tid : procfs::list_tasks(pid_)) {
    result.emplace(tid, of_thread(pid_, tid));
  }
  return result;
}

Untouched::Memory Untouched::memory() const {
  Memory result;
  for (const auto& mapping : snapshot_.maps) {
    if (mapping.readable && mapping.writable && (shared_ || !mapping.shared)) {
      result.emplace(mapping.begin, read(pid_, mapping));
    }
  }
  return result;
}

std::vector<std::string> Untouched::differences() const {
  auto lines = test::differences(snapshot_, take_snapshot(pid_));
  const auto now = threads();
  for (const auto& [tid, was] : threads_) {
    const auto is = now.find(tid);
    if (is != now.end() && is->second != was) {
      lines.push_back(fmt::format("thread {}: {} was {}", tid.value(), is->second, was));
    }
  }
  const auto changed = memory();
  for (const auto& [begin, was] : memory_) {
    const auto& is = changed.at(begin);
    if (is != was) {
      const auto at = std::ranges::mismatch(is, was).in1 - is.begin();
      lines.push_back(fmt::format("memory at {:#x} has changed",
                                  begin.value() + static_cast<std::uint64_t>(at)));
    }
  }
  return lines;
}

}  // namespace pyinject::test
