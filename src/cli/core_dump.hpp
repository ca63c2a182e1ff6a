// `dump --core`: prints the Python stacks in a core file.
#pragma once

#include "pyinject/base/log.hpp"

#include <string>

namespace pyinject::cli {

struct CoreDumpOptions {
  std::string file;
  bool json = false;
  bool verbose = false;
};

// Prints to standard output; returns the exit status.
[[nodiscard]] int dump_core(const CoreDumpOptions& options, base::Logger& logger);

}  // namespace pyinject::cli
