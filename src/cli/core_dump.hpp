// `dump --core`: prints the Python stacks in a core file.
#pragma once

#include "pyinject/base/log.hpp"

namespace pyinject::cli {

struct DumpCommand;

// Prints COMMAND's core to standard output; returns the exit status.
[[nodiscard]] int dump_core(const DumpCommand& command, bool verbose, base::Logger& logger);

}  // namespace pyinject::cli
