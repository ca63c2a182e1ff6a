// What `dump` prints of a snapshot.
#pragma once

#include "pyinject/inspect/snapshot.hpp"

#include <string>

namespace pyinject::cli {

struct DumpCommand;

// For the standard output, with the lines of the sources that COMMAND wants.
[[nodiscard]] std::string dumped_text(const inspect::ProcessSnapshot& process,
                                      const DumpCommand& command, bool verbose);

}  // namespace pyinject::cli
