// perf-pyinject --help; the text of each verb is in its VerbSpec.
#pragma once

#include <string>

namespace pyinject::cli {

// Fits a terminal of 80 columns.
[[nodiscard]] std::string general_help();

}  // namespace pyinject::cli
