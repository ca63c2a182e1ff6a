#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace pyinject::base {

namespace {

// What is not shown but changes what is: C1 control characters, which terminals interpret like
// escape sequences, and Unicode's categories Cf (writing direction, joiners, tags), Zl, Zp and Co.
constexpr auto kSteering = std::to_array<std::pair<char32_t, char32_t>>({{0x80, 0x9f},
                                                                         {0xad, 0xad},
                                                                         {0x600, 0x605},
                                                                         {0x61c, 0x61c},
                                                                         {0x180e, 0x180e},
                                                                         {0x200b, 0x200f},
                                                                         {0x2028, 0x202e},
                                                                         {0x2060, 0x206f},
                                                                         {0xe000, 0xf8ff},
                                                                         {0xfeff, 0xfeff},
                                                                         {0xfff9, 0xfffb},
                                                                         {0x1d173, 0x1d17a},
                                                                         {0xe0000, 0xe0fff},
                                                                         {0xf0000, 0x10ffff}});

bool is_steering(char32_t point) {
  return std::ranges::any_of(kSteering, [point](const auto& range) {
    return range.first <= point && point <= range.second;
  });
}

// TEXT: the valid UTF-8 of one.
char32_t code_point(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  char32_t point = lead & (0xffU >> (text.size() + 1));
  for (const char byte : text.substr(1)) {
    point = point << 6U | (static_cast<unsigned char>(byte) & 0x3fU);
  }
  return point;
}

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
      length = length != 0 && is_steering(code_point(text.substr(0, length))) ? 0 : length;
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

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto length = static_cast<unsigned char>(text.front()) < 0x80 ? 1 : utf8_length(text);
    if (length == 0) {
      return false;
    }
    text.remove_prefix(length);
  }
  return true;
}

std::string hexadecimal(std::span<const std::byte> bytes) {
  std::string text;
  for (const auto byte : bytes) {
    text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  }
  return text;
}

std::string without_digits(std::string_view text) {
  std::string key;
  for (const char each : text) {
    const bool digit = each >= '0' && each <= '9';
    if (!digit) {
      key += each;
    } else if (key.empty() || key.back() != '*') {
      key += '*';
    }
  }
  return key;
}

std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t end = text.size(); end > 3; end -= 3) {
    text.insert(end - 3, ",");
  }
  return text;
}

std::string bytes_text(std::uint64_t bytes) {
  if (bytes < 1000) {
    return fmt::format("{} B", bytes);
  }
  const auto kilobytes = static_cast<double>(bytes) / 1000;
  if (kilobytes < 1000) {
    return fmt::format("{:.0f} kB", kilobytes);
  }
  return kilobytes < 1'000'000 ? fmt::format("{:.1f} MB", kilobytes / 1000)
                               : fmt::format("{:.1f} GB", kilobytes / 1'000'000);
}

std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
  if (count == 1) {
    return fmt::format("1 {}", one);
  }
  return many.empty() ? fmt::format("{} {}s", count, one) : fmt::format("{} {}", count, many);
}

}  // namespace pyinject::base
