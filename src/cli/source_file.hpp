// Source files on this machine, for annotations.
#pragma once

#include "report/annotation.hpp"

#include <string>

namespace pyinject::cli {

// Reads sources of functions in RECORDING. Notes of a source: why it cannot be read, or that it is
// newer than RECORDING.
[[nodiscard]] report::ReadSource source_reader(const std::string& recording);

}  // namespace pyinject::cli
