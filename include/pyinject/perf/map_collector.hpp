// For a process that has exited, perf looks for a map only at /tmp/perf-PID.map in its own mount
// namespace and with the pid of its own pid namespace. This puts the maps of targets in other
// namespaces there.
//
// For example:
//   const auto map = perf::collect_map(::open("/proc/12/root/tmp/perf-1.map", O_RDONLY), pid);
//   std::cout << map.path << ": " << map.names << " names\n";
#pragma once

#include "pyinject/base/pid.hpp"

#include <cstdint>
#include <string>

namespace pyinject::perf {

struct MapCollectorOptions {
  std::string folder = "/tmp";                           // where perf looks
  std::uint64_t most_bytes = std::uint64_t{256} << 20U;  // limit for one map, both read and written
};

struct CollectedMap {
  std::string path;
  bool copied = false;        // false: the target's own file is already that file
  std::uint64_t names = 0;    // lines copied
  std::uint64_t dropped = 0;  // lines that do not have the format of a perf map
  bool cut_short = false;     // the map is longer than the limit
};

// FD: the map that the target writes, open for reading; it may have been deleted. The target is not
// trusted: only a regular file is read, only lines of the right format are copied, and names are
// made printable. The copy (mode 0600) is written under a temporary name and renamed; links are not
// followed. Throws base::Error if the copy cannot be made.
[[nodiscard]] CollectedMap collect_map(int fd, base::Pid pid,
                                       const MapCollectorOptions& options = {});

// Removes the copies that collect_map() of the killed process TOOL had started but not renamed.
void remove_unfinished_copies(base::Pid tool, const MapCollectorOptions& options = {});

}  // namespace pyinject::perf
