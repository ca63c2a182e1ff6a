// The manual page of a verb, made from its VerbSpec.
#pragma once

#include "cli/verb.hpp"

#include <string>

namespace pyinject::cli {

// For perf-pyinject-VERB.1, in the macros of man(7).
[[nodiscard]] std::string manual_page(const VerbSpec& verb);

}  // namespace pyinject::cli
