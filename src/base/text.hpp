// Strict parsing of numbers: the whole text or nothing.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::base {

// Digits of BASE only: no sign for unsigned types, no white space, no prefix, no overflow.
template <std::integral Number>
[[nodiscard]] std::optional<Number> parse_number(std::string_view text, int base = 10) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc{} || rest != end || text.empty()) {
    return std::nullopt;
  }
  return value;
}

// Splits at every SEPARATOR; keeps empty pieces ("a,,b" has three).
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);

// Without leading and trailing blanks, tabs and newlines.
[[nodiscard]] std::string_view trim(std::string_view text);

// Text that came from a target, made safe for a terminal: control characters and bytes that are not
// UTF-8 become \xNN, and it ends in "..." after LIMIT bytes.
[[nodiscard]] std::string printable(std::string_view text, std::size_t limit = 4096);

}  // namespace pyinject::base
