// Texts: strict parsing, and wording for messages.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::base {

// The whole text or nothing. Digits of BASE only: no sign for unsigned types, no white space, no
// prefix, no overflow.
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

// Text from a target, made safe for a terminal: replaces control characters and invalid UTF-8 by
// \xNN, and truncates it with "..." after LIMIT bytes.
[[nodiscard]] std::string printable(std::string_view text, std::size_t limit = 4096);

// Without overlong forms and surrogates.
[[nodiscard]] bool is_utf8(std::string_view text);

// "07af" for the bytes 7 and 175.
[[nodiscard]] std::string hexadecimal(std::span<const std::byte> bytes);

// TEXT with "*" for each run of digits: "worker-*", for those that differ in nothing else.
[[nodiscard]] std::string without_digits(std::string_view text);

// "1,234,567".
[[nodiscard]] std::string grouped(std::uint64_t number);

// "312 B", "31 kB", "1.2 MB".
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);

// "1 thread", "2 threads"; MANY where the plural is not ONE and an s.
[[nodiscard]] std::string counted(std::uint64_t count, std::string_view one,
                                  std::string_view many = {});

}  // namespace pyinject::base
