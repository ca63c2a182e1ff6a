// What the completions of the shells offer, from the table of verbs.
#pragma once

#include "cli/verb.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace pyinject::cli {

// What follows an option or a verb.
enum class Completed {
  kNothing,  // an option: has no value
  kUnknown,  // a value that a shell cannot know
  kWord,     // one of WORDS
  kList,     // some of WORDS, with commas
  kPids,     // of Pythons, with commas
  kPerfPid,
  kUsers,
  kRecordings,
  kFiles,
  kDirectories,
  kCommand,  // after "--"
};

struct Completion {
  Completed kind = Completed::kNothing;
  std::vector<std::string> words{};
};

struct CompletedOption {
  std::string_view long_name;
  char short_name = 0;  // 0: none
  std::string description;
  Completion value;
};

// The options of VERB, and those of perf record that are used most if VERB passes them on.
[[nodiscard]] std::vector<CompletedOption> completed_options(const VerbSpec& verb);
// Those that need no verb.
[[nodiscard]] std::vector<CompletedOption> completed_global_options();
// What VERB takes besides options.
[[nodiscard]] Completion completed_operands(const VerbSpec& verb);

}  // namespace pyinject::cli
