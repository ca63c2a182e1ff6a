// perf looks for a dead process's map at /tmp/perf-PID.map of its own mount namespace and under its
// own number only. This puts the maps of targets from elsewhere there.
#pragma once

#include "pyinject/base/pid.hpp"

#include <cstdint>
#include <string>

namespace pyinject::perf {

struct MapCollectorOptions {
  std::string folder = "/tmp";                           // where perf looks
  std::uint64_t most_bytes = std::uint64_t{256} << 20U;  // of one map, read and written
};

struct CollectedMap {
  std::string path;
  bool copied = false;        // false: the target's own file is that very file
  std::uint64_t names = 0;    // lines copied
  std::uint64_t dropped = 0;  // lines that are none
  bool cut_short = false;     // it is longer than the limit
};

// FD: the map that the target writes, open for reading; it may have been deleted. The target is
// not trusted: only a regular file is read, only lines of the format are copied, names are made
// printable. The copy (mode 0600) is made under a temporary name and renamed; links are not
// followed. Throws base::Error when it cannot be made.
[[nodiscard]] CollectedMap collect_map(int fd, base::Pid pid,
                                       const MapCollectorOptions& options = {});

// For a perf that shows names while the target goes on to write them: a link to FD, which has to
// stay open. collect_map() takes its place afterwards, also by the hand of another process. Nothing
// happens where the target's own file is there. Throws base::Error when it cannot be made.
void link_map(int fd, base::Pid pid, const MapCollectorOptions& options = {});

// Removes what collect_map() of the process TOOL, which was killed, has begun and not renamed.
void remove_unfinished_copies(base::Pid tool, const MapCollectorOptions& options = {});

}  // namespace pyinject::perf
