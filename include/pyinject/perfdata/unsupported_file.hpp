// Why a file is not read.
//
// For example:
//   const auto read = report::read_profile("perf.data");
//   if (const auto* const unsupported = std::get_if<perfdata::UnsupportedFile>(&read)) {
//     std::cerr << "perf.data: " << unsupported->why << '\n';
//   }
#pragma once

#include "pyinject/version.hpp"

#include <string>

namespace pyinject::perfdata {

// A file that must be left unchanged: not a perf.data file, or of an unsupported kind.
struct UnsupportedFile {
  std::string why;  // "it was written to a pipe"
};

}  // namespace pyinject::perfdata
