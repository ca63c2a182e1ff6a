// The last steps of a recording, of Python stacks or of calls: perf and the command come to their
// end, and what the user's shell is told.
#pragma once

#include "pyinject/base/child.hpp"
#include "pyinject/base/log.hpp"
#include "pyinject/perf/perf_process.hpp"
#include "session/wait_for_end.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace pyinject::session {

// 0, or the status to end with, which has been said, when COMMAND cannot be run (workload.hpp).
// None is well.
[[nodiscard]] int refuse_command(const std::vector<std::string>& command, base::Logger& logger);

// Disables PERF's events. It reads commands only when its buffers are empty: one that is kept too
// busy for that is told to end by SIGTERM, which disables them at once; so is one whose answer
// INTERRUPT (a descriptor, or -1) comes before. TOLD_TO_END is set then.
[[nodiscard]] perf::Answer disable_events(perf::PerfProcess& perf, int interrupt, bool& told_to_end,
                                          base::Logger& logger);

// Of a perf that has not completed its file in time: by SIGTERM, on which it still does so, then by
// SIGKILL; at once where it is stuck. True: it was told to end by SIGTERM.
[[nodiscard]] bool make_perf_end(perf::PerfProcess& perf, base::Logger& logger);

// Has it completed its file? TOLD_TO_END: then it has when it ended as killed by SIGTERM.
[[nodiscard]] bool perf_completed(perf::PerfProcess& perf, bool told_to_end);

// What it has said so far, line by line.
void repeat_perf(const perf::PerfProcess& perf, base::LogLevel level, base::Logger& logger);

// Says why it did not complete its file. What the tool ends with: 0 where it ended well before it
// recorded anything.
[[nodiscard]] int report_perf_failure(perf::PerfProcess& perf, base::Logger& logger);

// Of one that was told to end by SIGTERM.
void make_command_end(base::Child& command, base::Logger& logger);

// Of a recording that perf completed. TARGETS: how many were recorded.
[[nodiscard]] int status_after(EndOfRecording end, base::Child* command, std::size_t targets,
                               base::Logger& logger);

}  // namespace pyinject::session
