// A `perf record` that somebody else has started: whom it records, and into which file.
#pragma once

#include "bpf/sampler.hpp"
#include "perf/record_options.hpp"
#include "perfdata/event.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <ctime>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace pyinject::session {

struct RunningPerf {
  base::Pid pid;
  base::UniqueFd process;  // a pidfd
  perf::ChosenTargets targets;
  base::UniqueFd file;
  std::vector<perfdata::Event> events;

  // Of its file, as it is called by now; nullopt: that is not seen from here.
  [[nodiscard]] std::optional<std::string> path() const;
};

// Waits until DEADLINE for its file, which it describes its events in when it has opened them. Else
// why nothing can be put into it: "not_perf", "pipe", "several_files", "folder", "no_file",
// "other_namespace", "not_treatable", "no_rights".
[[nodiscard]] std::variant<RunningPerf, bpf::Unavailable> inspect_running_perf(
    base::Pid pid, base::Deadline deadline);

// Why stacks would find no samples of EVENTS: "no_callchains", "only_tracepoints", "no_times",
// "other_clock". BY_CLOCK: as Sampler::by_clock(). Pure.
[[nodiscard]] std::optional<bpf::Unavailable> check_joinable(
    const std::vector<perfdata::Event>& events, bool by_clock);

// The clock of their times; nullopt: perf's own, which only the kernel can read. Pure.
[[nodiscard]] std::optional<clockid_t> clock_of(const std::vector<perfdata::Event>& events);

}  // namespace pyinject::session
