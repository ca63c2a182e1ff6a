// The options of `perf record`, as far as needed to separate options from a command. Verified
// against `perf record -h` of 6.1, 6.12 and 7.2.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::perf {

enum class OptionArgument {
  kNone,
  kRequired,  // --name=VALUE, --name VALUE, -nVALUE or -n VALUE
  kOptional,  // --name=VALUE or -nVALUE; the next word is never its value
};

struct RecordOption {
  std::string_view long_name;  // may be empty
  char short_name = 0;         // 0: none
  OptionArgument argument = OptionArgument::kNone;
};

// The options of all versions.
[[nodiscard]] std::span<const RecordOption> record_options();

// The targets that perf selects from WORDS, options and what follows them.
struct ChosenTargets {
  std::string tasks;      // the list of -p, else of -t
  bool launched = false;  // the command with its children; neither: the whole system or a part
};
[[nodiscard]] ChosenTargets chosen_targets(const std::vector<std::string>& words);

// One option of a command line. WORDS: as written, one or two words.
struct ScannedOption {
  const RecordOption* option = nullptr;  // nullptr: not in any table
  bool negated = false;                  // --no-NAME
  std::string value;                     // empty: none
  std::vector<std::string> words;
};

struct ScannedWords {
  // One group per word or cluster of short options ("-gvp 1" is one group of three).
  std::vector<std::vector<ScannedOption>> groups;
  bool separator = false;             // there was a "--"
  std::vector<std::string> command;   // the words after the options
  std::vector<std::string> problems;  // "option --X needs a value", "--X is ambiguous: ..."
};

// Scans WORDS as perf's own parser does: stops at "--" or at the first word that is not an option.
// TABLES are searched together, earlier ones first, perf's own last; long names may be abbreviated.
// For a cluster, ScannedOption::words has each option separately ("-v", "-p" "1").
[[nodiscard]] ScannedWords scan_words(std::span<const std::string> words,
                                      std::span<const std::span<const RecordOption>> tables);

}  // namespace pyinject::perf
