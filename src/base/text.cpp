#include "base/text.hpp"

#include <fmt/format.h>

namespace pyinject::base {

namespace {

// Length of the valid UTF-8 sequence at the start of TEXT; 0: invalid.
std::size_t utf8_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  std::size_t length = 0;
  unsigned char second_least = 0x80;
  unsigned char second_most = 0xbf;
  if (lead >= 0xc2 && lead <= 0xdf) {
    length = 2;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    length = 3;
    second_least = lead == 0xe0 ? 0xa0 : 0x80;  // no overlong forms
    second_most = lead == 0xed ? 0x9f : 0xbf;   // no surrogates
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    length = 4;
    second_least = lead == 0xf0 ? 0x90 : 0x80;
    second_most = lead == 0xf4 ? 0x8f : 0xbf;
  }
  if (length == 0 || text.size() < length) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool valid = i == 1 ? byte >= second_least && byte <= second_most : (byte & 0xc0) == 0x80;
    if (!valid) {
      return 0;
    }
  }
  // C1 control characters are U+0080..U+009F: terminals interpret them like escape sequences.
  if (length == 2 && lead == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0) {
    return 0;
  }
  return length;
}

}  // namespace

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  while (true) {
    const auto end = text.find(separator);
    pieces.push_back(text.substr(0, end));
    if (end == std::string_view::npos) {
      return pieces;
    }
    text.remove_prefix(end + 1);
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string printable(std::string_view text, std::size_t limit) {
  std::string result;
  while (!text.empty()) {
    if (result.size() >= limit) {
      return result + "...";
    }
    const auto byte = static_cast<unsigned char>(text.front());
    std::size_t length = 1;
    if (byte >= 0x80) {
      length = utf8_length(text);
    }
    if (length == 0 || byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
      text.remove_prefix(1);
      continue;
    }
    result += text.substr(0, length);
    text.remove_prefix(length);
  }
  return result;
}

std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
  if (count == 1) {
    return fmt::format("1 {}", one);
  }
  return many.empty() ? fmt::format("{} {}s", count, one) : fmt::format("{} {}", count, many);
}

}  // namespace pyinject::base
