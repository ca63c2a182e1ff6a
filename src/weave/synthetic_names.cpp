#include "weave/synthetic_names.hpp"

#include "base/text.hpp"
#include "weave/debug_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pyinject::weave {

namespace {

constexpr std::uint64_t kStride = 16;
constexpr std::uint64_t kInside = 8;
// Each line takes four addresses: perf may look up the byte before a caller's address. Real
// functions have fewer lines; forged ones get none.
constexpr std::uint32_t kMostLines = 1U << 20U;

std::string key_of(const NamedCode& code) {
  return code.name + '\0' + std::to_string(code.first_line);
}

}  // namespace

NamedCode named_code(const sample::Code& name) {
  auto file = base::printable(name.file);
  return {.name = fmt::format("py::{}{}{}", base::printable(name.qualname), file.empty() ? "" : ":",
                              file),
          .file = std::move(file),
          .first_line = name.first_line};
}

void SyntheticNames::expect(const NamedCode& code, std::uint32_t last_line) {
  if (code.first_line != 0 && last_line > code.first_line) {
    auto& last = last_lines_[key_of(code)];
    last = std::max(last, last_line);
  }
}

std::uint64_t SyntheticNames::Place::address(std::uint32_t line, sample::Does does) const {
  const bool has_it = first_line <= line && line <= last_line;
  return begin + kInside + std::uint64_t{kBytesOfLine} * (has_it ? line - first_line : 0) + 1 +
         static_cast<std::uint64_t>(does);
}

sample::Does SyntheticNames::does_at(std::uint64_t address) {
  const auto number = address % kBytesOfLine;
  return number == 0 ? sample::Does::kUnknown : static_cast<sample::Does>(number - 1);
}

SyntheticNames::Place SyntheticNames::Place::at(std::uint64_t address) {
  return {.begin = address - kInside - 1};
}

SyntheticNames::Place SyntheticNames::place(const NamedCode& code, std::uint32_t pid) {
  auto key = key_of(code);
  if (const auto found = known_.find(key); found != known_.end()) {
    return found->second;
  }
  Place place{.begin = base_ + used_, .first_line = code.first_line, .last_line = code.first_line};
  if (const auto last = last_lines_.find(key);
      last != last_lines_.end() && last->second - code.first_line < kMostLines) {
    if (lines_.take(pid, last->second - code.first_line)) {
      place.last_line = last->second;
    } else {
      key += '\0';  // key of the other place, without lines
      if (const auto found = known_.find(key); found != known_.end()) {
        return found->second;
      }
      ++without_lines_[pid];
    }
  }
  const auto lines = place.last_line - place.first_line;
  const auto size =
      (kStride + std::uint64_t{kBytesOfLine} * lines + kStride - 1) / kStride * kStride;
  if (full_ || used_ + size + kStride > size_) {
    return last_place();
  }
  used_ += size;
  symbols_.push_back({.address = place.begin,
                      .size = size,
                      .name = code.name,
                      .file = code.file,
                      .first_line = place.first_line,
                      .last_line = place.last_line});
  known_.emplace(key, place);
  return place;
}

SyntheticNames::Place SyntheticNames::last_place() {
  const auto begin = base_ + size_ - kStride;
  if (!full_) {
    full_ = true;
    symbols_.push_back({.address = begin, .size = kStride, .name = "[no room for names]"});
  }
  return {.begin = begin};
}

}  // namespace pyinject::weave
