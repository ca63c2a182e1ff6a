#include "calls/tracing_data.hpp"

#include "base/byte_cursor.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace pyinject::calls {

namespace {

using base::ByteCursor;

constexpr std::string_view kMagic{"\x17\x08\x44tracing", 10};

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Returns the text up to the next NUL and consumes the NUL.
std::string take_text(ByteCursor& cursor) {
  const auto left = as_text(cursor.left());
  const auto end = left.find('\0');
  if (end == std::string_view::npos) {
    cursor.fail();
    return {};
  }
  std::string text{left.substr(0, end)};
  cursor.take(end + 1);
  return text;
}

std::string_view take_file(ByteCursor& cursor) {
  return as_text(cursor.take(cursor.number<std::uint64_t>()));
}

}  // namespace

std::vector<TracepointFormat> parse_tracing_data(std::span<const std::byte> bytes) {
  ByteCursor cursor{bytes};
  if (as_text(cursor.take(kMagic.size())) != kMagic) {
    return {};
  }
  take_text(cursor);  // version
  const auto order = cursor.number<std::uint8_t>();
  cursor.number<std::uint8_t>();   // size of a long
  cursor.number<std::uint32_t>();  // size of a page
  if (order != 0) {                // not from a little-endian machine
    return {};
  }
  for (const auto* const name : {"header_page", "header_event"}) {
    if (take_text(cursor) != name) {
      return {};
    }
    take_file(cursor);
  }
  for (auto left = cursor.number<std::uint32_t>(); left > 0 && !cursor.failed(); --left) {
    take_file(cursor);  // ftrace's own events
  }
  std::vector<TracepointFormat> formats;
  for (auto systems = cursor.number<std::uint32_t>(); systems > 0 && !cursor.failed(); --systems) {
    const auto system = take_text(cursor);
    for (auto left = cursor.number<std::uint32_t>(); left > 0 && !cursor.failed(); --left) {
      const auto text = take_file(cursor);
      if (!cursor.failed()) {
        formats.push_back({.system = system, .text = std::string{text}});
      }
    }
  }
  return formats;
}

std::optional<std::string> without_expressions(std::string_view text) {
  constexpr std::size_t kLongest = 4096;  // formats of this tool have less than 1000
  const auto fields = text.substr(0, text.find("\nprint fmt:"));
  if (fields.size() > kLongest) {
    return std::nullopt;
  }
  return std::string{fields} + "\nprint fmt: \"\"\n";
}

}  // namespace pyinject::calls
