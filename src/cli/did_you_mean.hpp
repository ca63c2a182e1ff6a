// Finds the word that a user may have mistyped.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace pyinject::cli {

// The only word in KNOWN that begins with WORD (three letters or more), else the one with the
// fewest edits (insert, remove, replace, swap two neighbors) from WORD: at most two, and fewer than
// half of its letters. nullopt: none, or several that are as near.
[[nodiscard]] std::optional<std::string_view> did_you_mean(std::string_view word,
                                                           std::span<const std::string_view> known);

}  // namespace pyinject::cli
