#include "stress/leftovers.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "procfs/status.hpp"
#include "procfs/tasks.hpp"
#include "pyinject/base/deadline.hpp"
#include "support/patience.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include <sched.h>

namespace pyinject::test {

namespace {

constexpr std::uint64_t kArena = 65536;

// All signals but SIGKILL, SIGSTOP and the C library's SIGSETXID (33): glibc 2.35, the end of
// start_thread(). CPython's Thread.join() returns before that.
constexpr const char* kBlockedAtExit = "fffffffefffbfeff";

bool has_exiting_thread(const Snapshot& snapshot) {
  return std::ranges::any_of(snapshot.threads, [](const auto& thread) {
    const auto blocked = thread.second.find("SigBlk");
    return blocked != thread.second.end() && blocked->second == kBlockedAtExit;
  });
}

std::set<std::string> executable_ranges(const Snapshot& snapshot) {
  std::set<std::string> ranges;
  for (const auto& mapping : snapshot.maps) {
    if (mapping.executable && mapping.inode == 0) {
      ranges.insert(fmt::format("{:x}-{:x}", mapping.begin.value(), mapping.end.value()));
    }
  }
  return ranges;
}

}  // namespace

std::vector<std::string> left_in_threads(base::Pid pid, bool stops) {
  std::vector<std::string> found;
  for (const auto thread : procfs::list_tasks(pid)) {
    const auto status = procfs::read_status(pid, thread);
    if (!status) {
      continue;  // the thread has exited
    }
    if (status->tracer.value() != 0) {
      found.push_back(fmt::format("tid {}: TracerPid {}", thread.value(), status->tracer.value()));
    }
    if (status->state == 't' || (status->state == 'T' && !stops)) {
      found.push_back(fmt::format("tid {}: state {}", thread.value(), status->state));
    }
  }
  return found;
}

Snapshot take_snapshot_after_exits(base::Pid pid) {
  const auto deadline = base::Deadline::after(kPatience);
  auto snapshot = take_snapshot(pid);
  while (has_exiting_thread(snapshot) && !deadline.expired()) {
    ::sched_yield();
    snapshot = take_snapshot(pid);
  }
  return snapshot;
}

std::vector<std::string> left_in_process(const Snapshot& before, const Snapshot& after) {
  std::vector<std::string> found;
  for (auto& line : differences(before, after, {.threads = false, .maps = false})) {
    const bool map = line.starts_with("fd ") && line.find(" opened: /") != std::string::npos &&
                     line.find("/tmp/perf-") != std::string::npos;
    if (!map) {
      found.push_back(std::move(line));
    }
  }
  const auto known = executable_ranges(before);
  for (const auto& mapping : after.maps) {
    const bool anonymous = mapping.inode == 0 && mapping.path.empty();
    const auto range = fmt::format("{:x}-{:x}", mapping.begin.value(), mapping.end.value());
    if (mapping.executable && anonymous && !known.contains(range) &&
        (mapping.writable || mapping.shared || mapping.size() % kArena != 0)) {
      found.push_back(fmt::format("executable memory {} that is no arena", range));
    }
  }
  return found;
}

std::vector<std::string> wrong_in_map(const std::string& path) {
  std::vector<std::string> found;
  std::set<std::uint64_t> addresses;
  const auto text = base::read_file(path, std::size_t{1} << 26U).value_or("");
  for (const auto line : base::split(text, '\n')) {
    if (line.empty()) {
      continue;
    }
    const auto fields = base::split(line, ' ');
    const auto address = base::parse_number<std::uint64_t>(fields[0], 16);
    const auto size =
        fields.size() < 3 ? std::nullopt : base::parse_number<std::uint64_t>(fields[1], 16);
    if (!address || !size || *size == 0 || *size > kArena) {
      found.push_back(fmt::format("map line `{}`", base::printable(line, 200)));
    } else if (!addresses.insert(*address).second) {
      found.push_back(fmt::format("map: {:x} twice", *address));
    }
  }
  return found;
}

}  // namespace pyinject::test
