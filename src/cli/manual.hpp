// The manual page of a verb, made from its VerbSpec.
#pragma once

#include "cli/verb.hpp"

#include <string>
#include <string_view>

namespace pyinject::cli {

// For perf-pyinject-VERB.1, in the macros of man(7). DATE: as in "2026-11-25".
[[nodiscard]] std::string manual_page(const VerbSpec& verb, std::string_view date);

// perf-pyinject.1: TEXT with its marks replaced.
//   .\" OPTION json             the header of an item: the option, and the verbs that have it
//   .\" OPTION output top why   if the text is about these verbs
//   .\" OTHER OPTIONS           after them: the options without an item that only one verb has
// Throws std::runtime_error unless each option of each verb is there exactly once.
[[nodiscard]] std::string overall_manual_page(std::string_view text);

}  // namespace pyinject::cli
