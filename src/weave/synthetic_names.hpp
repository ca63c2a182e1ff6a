// Addresses for names that have none: Python frames without a trampoline, and marks. An address of
// a function with a known first line also encodes the line.
#pragma once

#include "base/budget.hpp"
#include "pyinject/weave/symbol_image.hpp"
#include "weave/python_stacks.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace pyinject::weave {

// The function or mark that gets an address.
struct NamedCode {
  std::string name;
  std::string file{};            // empty: no lines
  std::uint32_t first_line = 0;  // 0: unknown; functions that differ in it are different
};

// The name that CPython's trampolines have.
[[nodiscard]] NamedCode named_code(const sample::Code& name);

class SyntheticNames {
 public:
  static constexpr std::uint64_t kSize = std::uint64_t{256} << 20U;  // of the range, in bytes

  // What address() encodes in ADDRESS, of a range that begins at a multiple of kStride.
  [[nodiscard]] static sample::Does does_at(std::uint64_t address);

  // Maximum number of lines that have addresses, shared among processes (base/budget.hpp).
  static constexpr std::uint64_t kMostForLines = std::uint64_t{16} << 20U;

  // BASE: a range that no process of the recording uses.
  explicit SyntheticNames(std::uint64_t base, std::uint64_t size = kSize)
      : base_{base}, size_{size} {}

  // Announces addresses of CODE for lines up to LAST_LINE. Call it before the first place().
  void expect(const NamedCode& code, std::uint32_t last_line);

  // The addresses of a name.
  struct Place {
    std::uint64_t begin = 0;
    std::uint32_t first_line = 0;
    std::uint32_t last_line = 0;  // 0: no lines
    // The address of LINE: BEGIN + 8 + 4 times its distance from the first line, plus 1, and what
    // DOES is as a number. For 0 and for lines out of range, the address of the first line.
    [[nodiscard]] std::uint64_t address(std::uint32_t line = 0,
                                        sample::Does does = sample::Does::kUnknown) const;
    // A place with only ADDRESS, which has its name elsewhere.
    [[nodiscard]] static Place at(std::uint64_t address);
  };
  // Returns the same place for the same name and first line. The range holds millions; when it is
  // full, all further names get the last place, which says so. If PID has used up its share of line
  // addresses, its functions have no lines, and another process with the same function gets a
  // separate place.
  [[nodiscard]] Place place(const NamedCode& code, std::uint32_t pid = 0);
  // Processes with functions that got no lines, and how many.
  [[nodiscard]] const std::map<std::uint32_t, std::uint64_t>& without_lines() const {
    return without_lines_;
  }
  [[nodiscard]] std::uint64_t address(const std::string& name) {
    return place({.name = name}).address();
  }

  [[nodiscard]] AddressRange range() const { return {.begin = base_, .end = base_ + size_}; }
  [[nodiscard]] const std::vector<ImageSymbol>& symbols() const { return symbols_; }

 private:
  [[nodiscard]] Place last_place();

  std::uint64_t base_;
  std::uint64_t size_;
  base::Budget lines_{kMostForLines};
  std::map<std::uint32_t, std::uint64_t> without_lines_;
  bool full_ = false;
  std::uint64_t used_ = 0;
  std::vector<ImageSymbol> symbols_;
  std::unordered_map<std::string, std::uint32_t> last_lines_;  // by key
  std::unordered_map<std::string, Place> known_;
};

}  // namespace pyinject::weave
