// Reads consecutive numbers from untrusted bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace pyinject::base {

// After the first missing byte every read returns 0, and failed() is true.
class ByteCursor {
 public:
  explicit ByteCursor(std::span<const std::byte> bytes) : left_{bytes} {}

  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool at_end() const { return left_.empty(); }
  [[nodiscard]] std::span<const std::byte> left() const { return left_; }

  template <typename Number>
  requires std::is_integral_v<Number> Number number() {
    Number value{};
    const auto bytes = take(sizeof value);
    if (!bytes.empty()) {
      std::memcpy(&value, bytes.data(), sizeof value);
    }
    return value;
  }

  // Returns all SIZE bytes, or none.
  std::span<const std::byte> take(std::uint64_t size) {
    if (failed_ || size > left_.size()) {
      fail();
      return {};
    }
    const auto bytes = left_.first(static_cast<std::size_t>(size));
    left_ = left_.subspan(bytes.size());
    return bytes;
  }

  // LEB128, DWARF 4 section 7.6; fails for more than 64 bits.
  std::uint64_t unsigned_leb() { return leb(false); }
  // In two's complement.
  std::uint64_t signed_leb() { return leb(true); }

  void fail() {
    failed_ = true;
    left_ = {};
  }

 private:
  std::uint64_t leb(bool with_sign) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = number<std::uint8_t>();
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80U) == 0) {
        const bool negative = with_sign && (byte & 0x40U) != 0 && shift + 7 < 64;
        return negative ? value | ~std::uint64_t{0} << (shift + 7) : value;
      }
    }
    fail();
    return 0;
  }

  std::span<const std::byte> left_;
  bool failed_ = false;
};

}  // namespace pyinject::base
