// What a verb of the command line is. Each is defined in a file of its own, NAME_verb.cpp, declared
// in verbs.hpp, and has a row in the table of verbs.cpp.
#pragma once

#include "perf/record_options.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace pyinject::cli {

class Reporter;
struct CommandLine;
struct Terminal;

struct VerbArguments {
  std::span<const std::string> words;    // the verb is the first
  std::optional<std::string> perf = {};  // the environment variable PERF
};

struct VerbSpec {
  std::string_view name;
  std::string_view summary;  // in perf-pyinject --help; rows with the same one share an entry
  std::span<const perf::RecordOption> options;  // ours; none: parse() knows them
  // Sets all of LINE but `verb`. If it sets `help`, the rest is not looked at. Throws
  // CommandLineError.
  void (*parse)(const VerbArguments& arguments, CommandLine& line);
  // LINE as parse() set it. Returns the exit status. Throws base::Error.
  int (*run)(const CommandLine& line, Reporter& reporter, const Terminal& terminal);
  std::string_view help;   // fits a terminal of 80 columns
  bool reads_proc = true;  // false: it works on files only
};

// For tables of options.
inline constexpr auto kFlag = perf::OptionArgument::kNone;
inline constexpr auto kValue = perf::OptionArgument::kRequired;

}  // namespace pyinject::cli
