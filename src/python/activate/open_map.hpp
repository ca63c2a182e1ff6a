// The perf map that a target writes to.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <string>

namespace pyinject::python {

struct OpenMap {
  bool open = false;    // the target has its map open
  base::UniqueFd file;  // the map, open for reading
  int problem = 0;      // errno if the map is open and cannot be read
};

// Uses the target's own open descriptor, so that it works even if the file has been deleted. PATH:
// the map as the target names it.
[[nodiscard]] OpenMap open_map_of(base::Pid pid, const std::string& path);

}  // namespace pyinject::python
