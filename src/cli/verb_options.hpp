// What the options of most verbs have in common.
#pragma once

#include "cli/argument_splitter.hpp"
#include "cli/command_line.hpp"
#include "cli/verb.hpp"
#include "pyinject/perf/perf_locator.hpp"
#include "pyinject/targets/manager.hpp"
#include "pyinject/weave/weave_flags.hpp"

#include <boost/program_options/variables_map.hpp>

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::cli {

// The options that set a member of WeaveFlags, of the verbs that have them.
struct FlagOption {
  const char* name;
  bool weave::WeaveFlags::*flag;
};
[[nodiscard]] std::span<const FlagOption> flag_options();

// Without a verb.
[[nodiscard]] std::span<const perf::RecordOption> global_options();

// What may stand in a command line beside the options of a verb.
enum class Operands { kNone, kOne, kPerfOptionsAndCommand };

struct ParsedWords {
  boost::program_options::variables_map values;
  SplitArguments split;
  // Of these options, for the verbs that have them.
  std::vector<base::Pid> pids;
  bool strict = true;  // false: --lenient
  std::chrono::nanoseconds deactivation_deadline = session::ManagerOptions{}.deactivation_deadline;
  perf::PerfSearch perf;
  weave::WeaveFlags flags = {};

  [[nodiscard]] bool has(const char* option) const { return values.count(option) != 0; }
  [[nodiscard]] std::optional<std::string> value(const char* option) const;
};

// ARGUMENTS are of VERB. Sets what LINE has of all verbs, `help` too. Throws CommandLineError.
[[nodiscard]] ParsedWords parse_words(const VerbSpec& verb, const VerbArguments& arguments,
                                      Operands operands, CommandLine& line);

// For a verb that needs targets. Throws CommandLineError when PARSED has none.
void require_pids(const VerbSpec& verb, const ParsedWords& parsed);

// WORDS are normalised by the splitter and options of OWN only. Throws CommandLineError.
[[nodiscard]] boost::program_options::variables_map store_own(
    std::span<const perf::RecordOption> own, const std::vector<std::string>& words);

}  // namespace pyinject::cli
