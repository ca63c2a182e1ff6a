// The table of verbs as code for a shell; the files of src/cli/completions/ use it.
#pragma once

#include <string>
#include <string_view>

namespace pyinject::cli {

// Each is put in place of the line kTableMark of the shell's file.
inline constexpr std::string_view kTableMark = "# TABLE\n";
[[nodiscard]] std::string bash_table();
[[nodiscard]] std::string zsh_table();
[[nodiscard]] std::string fish_table();

}  // namespace pyinject::cli
