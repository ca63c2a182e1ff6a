// The options of each verb that are ours.
#pragma once

#include "pyinject/cli/command_line.hpp"
#include "pyinject/perf/record_options.hpp"

#include <boost/program_options/variables_map.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::cli {

struct VerbOptions {
  std::string_view name;
  Verb verb;
  std::span<const perf::RecordOption> own;
};

// For messages.
inline constexpr std::string_view kVerbNames =
    "record, trace, top, sched, kmem, join, functions, weave, activate, deactivate or status";

// nullptr: there is none of that NAME. Without those that are passed on to perf
// (wrapped_verbs.hpp).
[[nodiscard]] const VerbOptions* find_verb(std::string_view name);
// Without a verb.
[[nodiscard]] std::span<const perf::RecordOption> global_options();

// WORDS are normalised by the splitter and options of OWN only. Throws CommandLineError.
[[nodiscard]] boost::program_options::variables_map store_own(
    std::span<const perf::RecordOption> own, const std::vector<std::string>& words);

}  // namespace pyinject::cli
