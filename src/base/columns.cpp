#include "base/columns.hpp"

#include <algorithm>
#include <string_view>

namespace pyinject::base {

namespace {

constexpr std::size_t kLeastLast = 16;  // minimum width of the last column
constexpr std::string_view kGap = "  ";

// Whether BYTE is the first of a UTF-8 character.
bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80; }

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, begins_character));
}

// TEXT, shortened to MOST columns with "..." at its end.
std::string cut(const std::string& text, std::size_t most) {
  constexpr std::string_view kMore = "...";
  if (columns_of(text) <= most) {
    return text;
  }
  std::size_t end = 0;
  for (std::size_t columns = 0; end < text.size(); ++end) {
    if (begins_character(text[end]) && ++columns > most - kMore.size()) {
      break;
    }
  }
  return text.substr(0, end).append(kMore);
}

}  // namespace

std::string to_columns(const std::vector<std::vector<std::string>>& rows,
                       const ColumnOptions& options) {
  if (rows.empty() || rows.front().empty()) {
    return {};
  }
  std::vector<std::size_t> widths(rows.front().size() - 1);  // the last column has no fixed width
  std::size_t before = 0;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    for (const auto& row : rows) {
      widths[i] = std::max(widths[i], columns_of(row[i]));
    }
    before += widths[i] + kGap.size();
  }
  const std::size_t last = std::max(options.width, before + kLeastLast) - before;
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const std::string pad(widths[i] - columns_of(row[i]), ' ');
      const bool right = std::ranges::find(options.right_aligned, i) != options.right_aligned.end();
      text.append(right ? pad + row[i] : row[i] + pad).append(kGap);
    }
    text.append(options.width == 0 ? row.back() : cut(row.back(), last)).append("\n");
  }
  return text;
}

}  // namespace pyinject::base
