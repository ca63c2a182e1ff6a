// Why a file is not read.
#pragma once

#include "pyinject/version.hpp"

#include <string>

namespace pyinject::perfdata {

// A file that must be left unchanged: not a perf.data file, or of an unsupported kind.
struct UnsupportedFile {
  std::string why;  // "it was written to a pipe"
};

}  // namespace pyinject::perfdata
