#include "python/stacks/line_table.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>

namespace pyinject::python {

namespace {

constexpr std::uint64_t kUnitBytes = 2;  // bytes of an instruction, without extended operands
constexpr std::uint8_t kEntryMark = 0x80;

// Line information in an entry: codes 0 to 15.
enum class LineForm { kSame, kOneLine, kNoColumns, kLong, kNone };

LineForm form_of(std::uint32_t code) {
  switch (code) {
    case 10:
    case 11:
    case 12:
      return LineForm::kOneLine;
    case 13:
      return LineForm::kNoColumns;
    case 14:
      return LineForm::kLong;
    case 15:
      return LineForm::kNone;
    default:
      return LineForm::kSame;
  }
}

class Entries {
 public:
  explicit Entries(std::span<const std::byte> left) : left_{left} {}

  // The first byte of the next entry; skips the rest of the previous one.
  std::optional<std::uint32_t> next() {
    while (!left_.empty()) {
      const auto byte = take();
      if ((byte & kEntryMark) != 0) {
        return byte;
      }
    }
    return std::nullopt;
  }

  // Six bits per byte, the lowest first; the lowest bit of the result is the sign.
  std::optional<std::int64_t> signed_number() {
    constexpr unsigned kMostBits = 36;
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < kMostBits && !left_.empty(); shift += 6) {
      const auto byte = take();
      value |= std::uint64_t{byte & 0x3fU} << shift;
      if ((byte & 0x40U) == 0) {
        const auto size = static_cast<std::int64_t>(value >> 1U);
        return (value & 1U) != 0 ? -size : size;
      }
    }
    return std::nullopt;
  }

 private:
  std::uint32_t take() {
    const auto byte = std::to_integer<std::uint32_t>(left_.front());
    left_ = left_.subspan(1);
    return byte;
  }

  std::span<const std::byte> left_;
};

}  // namespace

LineTable::LineTable(std::span<const std::byte> table, std::uint32_t first_line) {
  Entries entries{table};
  std::int64_t line = first_line;
  std::uint64_t begin = 0;
  for (auto byte = entries.next(); byte; byte = entries.next()) {
    const std::uint32_t code = (*byte >> 3U) & 0xfU;
    const auto form = form_of(code);
    if (form == LineForm::kOneLine) {
      line += code - 10;
    } else if (form == LineForm::kNoColumns || form == LineForm::kLong) {
      const auto change = entries.signed_number();
      if (!change) {
        break;
      }
      line += *change;
    }
    add(begin, form == LineForm::kNone ? 0 : line);
    begin += kUnitBytes * ((*byte & 7U) + 1);
  }
  add(begin, 0);
  runs_.shrink_to_fit();
}

void LineTable::add(std::uint64_t begin, std::int64_t line) {
  constexpr std::int64_t kMostLine = std::numeric_limits<std::int32_t>::max();
  const auto shown = static_cast<std::uint32_t>(line < 0 || line > kMostLine ? 0 : line);
  if (runs_.empty() || runs_.back().line != shown) {
    runs_.push_back({.begin = static_cast<std::uint32_t>(begin), .line = shown});
  }
}

std::uint32_t LineTable::line_at(std::uint64_t offset) const {
  const auto behind = std::ranges::upper_bound(runs_, offset, {}, &Run::begin);
  return behind == runs_.begin() ? 0 : std::prev(behind)->line;
}

}  // namespace pyinject::python
