// Addresses for what has none: Python frames without a trampoline, and marks.
#pragma once

#include "pyinject/weave/symbol_image.hpp"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace pyinject::weave {

class SyntheticNames {
 public:
  static constexpr std::uint64_t kSize = std::uint64_t{256} << 20U;  // of the range, bytes

  // BASE: where no process of the recording has anything.
  explicit SyntheticNames(std::uint64_t base) : base_{base} {}

  // The same for the same NAME. The range holds millions; beyond that all get the last address.
  [[nodiscard]] std::uint64_t address(const std::string& name);
  [[nodiscard]] AddressRange range() const { return {.begin = base_, .end = base_ + kSize}; }
  [[nodiscard]] const std::vector<ImageSymbol>& symbols() const { return symbols_; }

 private:
  std::uint64_t base_;
  std::vector<ImageSymbol> symbols_;
  std::unordered_map<std::string, std::uint64_t> known_;
};

}  // namespace pyinject::weave
