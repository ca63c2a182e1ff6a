// The word that a user may have mistyped.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace pyinject::cli {

// The one of KNOWN that takes the fewest changes of a letter (insert, remove, replace, swap two
// neighbours) to make from WORD: two at most, and less than half of its letters. nullopt: none, or
// several are as near.
[[nodiscard]] std::optional<std::string_view> did_you_mean(std::string_view word,
                                                           std::span<const std::string_view> known);

}  // namespace pyinject::cli
