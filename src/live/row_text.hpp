// A row of a live table as text: its columns, its name and its place. Pure.
#pragma once

#include "live/profile.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::live {

[[nodiscard]] inline double seconds_of(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>{time}.count();
}

// The columns beside SELF% and TOTAL%.
struct Columns {
  bool wait = true;
  bool mostly = true;  // what takes most of the row's own CPU time and waits
  bool gil = true;
  bool trend = false;
  bool times = true;
};

// Those that leave room for names on a screen of WIDTH columns, and that of ORDER. USES: the
// samples tell for what a CPU is used. GIL: a process has one.
[[nodiscard]] Columns columns_for(std::size_t width, Order order, bool uses, bool gil);

// The headings of COLUMNS. A star marks the one by which the rows are sorted.
[[nodiscard]] std::string heading_of(std::optional<Order> order, const Columns& columns);
// UTF8: the terminal shows more than ASCII.
[[nodiscard]] std::string numbers_of(const Row& row, const Columns& columns, bool utf8);

// Whether BYTE of a UTF-8 text is the first one of a character.
[[nodiscard]] constexpr bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80;
}
// As many of the first characters of TEXT.
[[nodiscard]] std::string cut(std::string_view text, std::size_t columns);
[[nodiscard]] std::size_t columns_of(std::string_view text);

// NAME and "FILE:LINE" in at most COLUMNS characters: of FILE, the last directories that fit. FILE
// is as the process has it. LINE: 0: none.
[[nodiscard]] std::string name_and_place(std::string_view name, std::string_view file,
                                         std::uint32_t line, std::size_t columns);
// The same of ROW, of a table of VIEW.
[[nodiscard]] std::string name_and_place(View view, const Row& row, std::size_t columns);

}  // namespace pyinject::live
