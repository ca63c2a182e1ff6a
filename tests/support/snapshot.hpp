// A process's state in /proc, to be compared before and after.
#pragma once

#include "procfs/maps.hpp"
#include "pyinject/base/pid.hpp"

#include <map>
#include <string>
#include <vector>

namespace pyinject::test {

// Per thread: TracerPid, SigBlk, SigPnd, and whether it is stopped. Per process: SigIgn, SigCgt,
// ShdPnd, file descriptors and mappings.
struct Snapshot {
  std::map<base::Tid, std::map<std::string, std::string>> threads;
  std::map<std::string, std::string> process;
  std::map<int, std::string> fds;  // targets of the links in /proc/PID/fd
  std::vector<procfs::Mapping> maps;
};

// Throws base::Error if the process is gone.
[[nodiscard]] Snapshot take_snapshot(base::Pid pid);

// Clear a field to ignore changes that the target may make itself.
struct Comparison {
  bool threads = true;  // started or ended; threads in both are always compared
  bool fds = true;
  // Ranges, permissions and files; [heap] and [stack] may grow. A working allocator maps and
  // unmaps, so compare mappings only of targets that are idle in between.
  bool maps = true;
};

// One line per difference, such as "fd 3 opened: /tmp/perf-1.map" or "thread 7: SigBlk 0... was
// 4..."; empty: no difference.
[[nodiscard]] std::vector<std::string> differences(const Snapshot& before, const Snapshot& after,
                                                   Comparison what = {});

}  // namespace pyinject::test
