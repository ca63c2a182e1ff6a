// The table of verbs as code for a shell; the files of src/cli/completions/ use it.
#pragma once

#include "cli/verb.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace pyinject::cli {

// Each is put in place of the line kTableMark of the shell's file.
inline constexpr std::string_view kTableMark = "# TABLE\n";
[[nodiscard]] std::string bash_table();
[[nodiscard]] std::string zsh_table();
[[nodiscard]] std::string fish_table();

// The options of VERB, and those of perf record that are used most if VERB passes them on.
[[nodiscard]] std::vector<Option> completed_options(const VerbSpec& verb);

// "word", "pids", "files", ...: in the file of bash and in options.json. Empty for kNothing.
[[nodiscard]] std::string_view name(Completed kind);

struct Completion {
  Completed kind = Completed::kNothing;
  std::string words{};  // with spaces between them
};
[[nodiscard]] Completion value_of(const Option& option);

// What OPTION does: one line, and no sentence.
[[nodiscard]] std::string brief_of(const Option& option);

}  // namespace pyinject::cli
