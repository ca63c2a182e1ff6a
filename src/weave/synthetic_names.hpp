// Addresses for what has none: Python frames without a trampoline, and marks. Those of a function
// with a known first line tell the line, too.
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

// Whose name it is.
struct NamedCode {
  std::string name;
  std::string file{};            // empty: no lines
  std::uint32_t first_line = 0;  // 0: not known; functions that differ in it are not the same
};

// As CPython's trampolines are called.
[[nodiscard]] NamedCode named_code(const CodeName& name);

class SyntheticNames {
 public:
  static constexpr std::uint64_t kSize = std::uint64_t{256} << 20U;  // of the range, bytes

  // Of it at most so many addresses are for lines, shared among processes (base/budget.hpp).
  static constexpr std::uint64_t kMostForLines = std::uint64_t{16} << 20U;

  // BASE: where no process of the recording has anything.
  explicit SyntheticNames(std::uint64_t base, std::uint64_t size = kSize)
      : base_{base}, size_{size} {}

  // There are going to be addresses of CODE for lines up to LAST_LINE. To be told before the first
  // one is asked for.
  void expect(const NamedCode& code, std::uint32_t last_line);

  // The addresses of one name.
  struct Place {
    std::uint64_t begin = 0;
    std::uint32_t first_line = 0;
    std::uint32_t last_line = 0;  // 0: it has no lines
    // That of a line: BEGIN + 8 + how far it is behind the first one. Of one that is not between
    // both, and of 0, that of the first one.
    [[nodiscard]] std::uint64_t address(std::uint32_t line = 0) const;
    // For ADDRESS alone, which has a name elsewhere.
    [[nodiscard]] static Place at(std::uint64_t address);
  };
  // The same for the same name and first line. The range holds millions; beyond that all get the
  // last place, which says so. When PID has used up its share of the addresses for lines it has
  // none, and another process that has the same function gets a place of its own.
  [[nodiscard]] Place place(const NamedCode& code, std::uint32_t pid = 0);
  // The processes whose functions have got no lines, and how many these are.
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
