// JSON as text, piece by piece: a document of a million samples never exists as a tree.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>

namespace pyinject::exports {

// TEXT in quotes. Invalid UTF-8 is replaced.
[[nodiscard]] std::string json_string(const std::string& text);

// Appends "[...]"; ITEM appends one of ITEMS.
template <typename Items, typename Item>
void append_list(std::string& out, const Items& items, const Item& item) {
  out += '[';
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) {
      out += ',';
    }
    item(items[i]);
  }
  out += ']';
}

// Appends the list of what NUMBER returns for each of ITEMS, integers.
template <typename Items, typename Number>
void append_numbers(std::string& out, const Items& items, const Number& number) {
  append_list(out, items, [&](const auto& item) {
    const fmt::format_int digits{number(item)};
    out.append(digits.data(), digits.size());
  });
}

}  // namespace pyinject::exports
