// perf-pyinject --help, and that of each verb.
#pragma once

#include "cli/verb.hpp"

#include <string>

namespace pyinject::cli {

// These fit a terminal of 80 columns.
[[nodiscard]] std::string general_help();
[[nodiscard]] std::string verb_help(const VerbSpec& verb);

// LINE with WORDS after it, in lines of at most WIDTH columns that begin with INDENT blanks from
// the second one on; without a newline at the end.
[[nodiscard]] std::string filled(std::string line, std::string_view words, std::size_t indent,
                                 std::size_t width);

}  // namespace pyinject::cli
