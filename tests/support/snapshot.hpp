// Healthy before and after: what /proc says of a process, to be compared.
#pragma once

#include "procfs/maps.hpp"
#include "pyinject/base/pid.hpp"

#include <map>
#include <string>
#include <vector>

namespace pyinject::test {

// Of each thread: TracerPid, SigBlk, SigPnd, and whether it is stopped. Of the process: SigIgn,
// SigCgt, ShdPnd, file descriptors and mappings.
struct Snapshot {
  std::map<base::Tid, std::map<std::string, std::string>> threads;
  std::map<std::string, std::string> process;
  std::map<int, std::string> fds;  // what the links of /proc/PID/fd say
  std::vector<procfs::Mapping> maps;
};

// Throws base::Error when the process has gone.
[[nodiscard]] Snapshot take_snapshot(base::Pid pid);

// What a target may do by itself is left out on request.
struct Comparison {
  bool threads = true;  // born or ended; those in both are always compared
  bool fds = true;
  // Ranges, permissions and files; [heap] and [stack] may grow. An allocator at work maps and
  // unmaps, so this is for targets that do nothing in between.
  bool maps = true;
};

// A line for each difference, such as "fd 3 opened: /tmp/perf-1.map" or "thread 7: SigBlk 0... was
// 4..."; empty when there is none.
[[nodiscard]] std::vector<std::string> differences(const Snapshot& before, const Snapshot& after,
                                                   Comparison what = {});

}  // namespace pyinject::test
