// A recorder of perf.data for machines without perf: the part of `perf record` that people type
// daily, with the same options, the same control descriptors and the same messages, as a process of
// its own. perf-record(1).
#pragma once

#include <span>
#include <string>

namespace pyinject::recorder {

// The first word of a command line that runs it in this tool; not a verb.
inline constexpr const char* kWord = "perf-record";

// What `perf record WORDS` does: records until it is told to stop, or until SIGINT or SIGTERM, by
// which the process then ends. Returns the exit status: 129 for options that it does not have, 255
// for failures. COMMAND_LINE is noted in the file.
[[nodiscard]] int record(std::span<const std::string> words,
                         std::span<const std::string> command_line);

}  // namespace pyinject::recorder
