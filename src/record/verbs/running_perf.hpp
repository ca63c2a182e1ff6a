// A `perf record` that another process started: its targets and its output file.
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

namespace pyinject::record {

struct RunningPerf {
  base::Pid pid;
  base::UniqueFd process;  // a pidfd
  perf::ChosenTargets targets;
  base::UniqueFd file;
  std::vector<perfdata::Event> events;
  // The only user whose processes it may record (perf_event_open(2), "permissions"); nullopt: all.
  std::optional<uid_t> user = {};
  std::string first_path = "perf's file";  // of FILE when this was found out

  // The current path of its file; nullopt: not visible from here.
  [[nodiscard]] std::optional<std::string> path() const;
};

// Waits until DEADLINE for perf's file, which describes the events once perf has opened them. On
// failure, the reason why stacks cannot be added: "not_perf", "pipe", "several_files", "folder",
// "no_file", "other_namespace", "not_treatable", "no_rights".
[[nodiscard]] std::variant<RunningPerf, bpf::Unavailable> inspect_running_perf(
    base::Pid pid, base::Deadline deadline);

// Why stacks could not be matched to samples of EVENTS: "no_callchains", "no_times", "other_clock".
// BY_CLOCK: as Sampler::by_clock(). Pure.
[[nodiscard]] std::optional<bpf::Unavailable> check_joinable(
    const std::vector<perfdata::Event>& events, bool by_clock);

// The clock of the events' timestamps; nullopt: perf's own, which only the kernel can read. Pure.
[[nodiscard]] std::optional<clockid_t> clock_of(const std::vector<perfdata::Event>& events);

}  // namespace pyinject::record
