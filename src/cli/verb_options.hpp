// The options of each verb that are ours.
#pragma once

#include "cli/command_line.hpp"
#include "perf/record_options.hpp"

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

// All of them.
[[nodiscard]] std::span<const std::string_view> verb_names();
// Of stock perf, and not here.
[[nodiscard]] bool is_verb_of_perf(std::string_view name);
// nullptr: there is none of that NAME. Without those that are passed on to perf
// (wrapped_verbs.hpp).
[[nodiscard]] const VerbOptions* find_verb(std::string_view name);
// Without a verb.
[[nodiscard]] std::span<const perf::RecordOption> global_options();

// WORDS are normalised by the splitter and options of OWN only. Throws CommandLineError.
[[nodiscard]] boost::program_options::variables_map store_own(
    std::span<const perf::RecordOption> own, const std::vector<std::string>& words);

}  // namespace pyinject::cli
