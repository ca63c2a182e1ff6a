// Definition of a verb. Each is defined in its own file, NAME_verb.cpp, declared in verbs.hpp, and
// listed in the table of verbs.cpp.
#pragma once

#include "cli/default_engine.hpp"
#include "cli/option.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::cli {

class Reporter;
struct CommandLine;
struct Terminal;

struct VerbArguments {
  std::span<const std::string> words;    // starting with the verb
  std::optional<std::string> perf = {};  // the environment variable PERF
  DefaultEngineSearch default_engine = {};
};

struct Choice {
  std::string_view name;
  std::string_view help;
};

struct VerbSpec {
  std::string_view name;
  std::string_view summary;         // in perf-pyinject --help
  std::span<const Option> options;  // its own; options_of() adds those of all verbs
  // Sets all members of LINE except `verb`. If it sets `help`, the others are ignored. Throws
  // CommandLineError.
  void (*parse)(const VerbArguments& arguments, CommandLine& line);
  // LINE: as set by parse(). Returns the exit status. Throws base::Error.
  int (*run)(const CommandLine& line, Reporter& reporter, const Terminal& terminal);
  // Fits a terminal of 80 columns. OPTIONS take the place of kOptionsMark, CHOICES that of
  // kChoicesMark.
  std::string_view help;
  std::vector<Choice> (*choices)() = nullptr;
  Completed operands = Completed::kNothing;  // what it takes besides options
  bool reads_proc = true;                    // false: it only uses files
};

// Lines of VerbSpec::help.
inline constexpr std::string_view kOptionsMark = "{options}";
inline constexpr std::string_view kChoicesMark = "{choices}";

}  // namespace pyinject::cli
