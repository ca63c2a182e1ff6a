// Source files on this machine, for annotations.
#pragma once

#include "report/annotation.hpp"

#include <ctime>
#include <optional>
#include <string>

namespace pyinject::cli {

// Reads sources of functions in a recording, which names them: any file. It shows only what the
// user of the recorded process may read, beneath that process's root; if the process has exited,
// what everybody may read. Notes of a source: why it cannot be read, or that it is newer than the
// recording. RECORDED: when; nullopt: unknown, so that no process counts as running.
[[nodiscard]] report::ReadSource source_reader(std::optional<std::time_t> recorded);
// Of the file RECORDING.
[[nodiscard]] report::ReadSource source_reader(const std::string& recording);

}  // namespace pyinject::cli
