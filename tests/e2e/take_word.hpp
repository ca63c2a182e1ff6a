// Splits the output of perf script into words.
#pragma once

#include "base/text.hpp"

#include <algorithm>
#include <string_view>

namespace pyinject::test {

// Removes the first word of TEXT, with the blanks around it, and returns it.
inline std::string_view take_word(std::string_view& text) {
  text = base::trim(text);
  const auto end = std::min(text.find_first_of(" \t"), text.size());
  const auto word = text.substr(0, end);
  text = base::trim(text.substr(end));
  return word;
}

}  // namespace pyinject::test
