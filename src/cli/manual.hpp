// The manual page of a verb, made from its VerbSpec.
#pragma once

#include "cli/verb.hpp"

#include <string>
#include <string_view>

namespace pyinject::cli {

// For perf-pyinject-VERB.1, in the macros of man(7). DATE: as in "2026-11-25".
[[nodiscard]] std::string manual_page(const VerbSpec& verb, std::string_view date);

}  // namespace pyinject::cli
