// Options shared by most verbs.
#pragma once

#include "cli/argument_splitter.hpp"
#include "cli/command_line.hpp"
#include "cli/verb.hpp"
#include "pyinject/perf/perf_locator.hpp"
#include "pyinject/targets/manager.hpp"
#include "pyinject/targets/scope.hpp"
#include "pyinject/weave/weave_flags.hpp"

#include <boost/program_options/variables_map.hpp>

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::cli {

// The options that set a member of WeaveFlags, for verbs that have them.
struct FlagOption {
  const char* name;
  bool weave::WeaveFlags::*flag;
};
[[nodiscard]] std::span<const FlagOption> flag_options();

// Options that need no verb.
[[nodiscard]] std::span<const perf::RecordOption> global_options();

// What a command line may contain besides the options of a verb.
enum class Operands { kNone, kOne, kPerfOptionsAndCommand };

struct ParsedWords {
  boost::program_options::variables_map values;
  SplitArguments split;
  // Values of these options, for verbs that have them.
  std::vector<base::Pid> pids;
  bool strict = true;  // false: --lenient
  std::chrono::nanoseconds deactivation_deadline = targets::ManagerOptions{}.deactivation_deadline;
  perf::PerfSearch perf;
  DefaultEngineSearch default_engine;
  weave::WeaveFlags flags = {};

  [[nodiscard]] bool has(const char* option) const { return values.count(option) != 0; }
  [[nodiscard]] std::optional<std::string> value(const char* option) const;
};

// ARGUMENTS: those of VERB. Sets the members of LINE that all verbs share, including `help`. Throws
// CommandLineError.
[[nodiscard]] ParsedWords parse_words(const VerbSpec& verb, const VerbArguments& arguments,
                                      Operands operands, CommandLine& line);

// TEXT, the value of OPTION, as a whole number from 1 to MOST. Throws CommandLineError.
[[nodiscard]] int parse_whole(const std::string& text, std::string_view option, int most);

// For a verb that needs targets. Throws CommandLineError if PARSED has none.
void require_pids(const VerbSpec& verb, const ParsedWords& parsed);

// The values of -u, --comm and -G, for verbs that have them. Throws CommandLineError.
[[nodiscard]] targets::Scope parse_scope(const ParsedWords& parsed);

// WORDS must be normalized by the splitter and contain only options in OWN. Throws
// CommandLineError.
[[nodiscard]] boost::program_options::variables_map store_own(
    std::span<const perf::RecordOption> own, const std::vector<std::string>& words);

}  // namespace pyinject::cli
