// Three kinds of number that must never be mixed: an address in a running process, an address as an
// ELF file gives it, and an offset in that file.
//
// For example:
//   const base::ElfAddress symbol{0x1234};
//   const base::RemoteAddress there = target.bias.apply(symbol);
#pragma once

#include "pyinject/version.hpp"

#include <compare>
#include <cstdint>

namespace pyinject::base {

// An address in the target. Not dereferenceable in this process.
class RemoteAddress {
 public:
  constexpr RemoteAddress() = default;
  explicit constexpr RemoteAddress(std::uint64_t value) : value_{value} {}
  [[nodiscard]] constexpr std::uint64_t value() const { return value_; }
  [[nodiscard]] constexpr bool is_null() const { return value_ == 0; }
  [[nodiscard]] constexpr RemoteAddress operator+(std::uint64_t bytes) const {
    return RemoteAddress{value_ + bytes};
  }
  [[nodiscard]] constexpr RemoteAddress operator-(std::uint64_t bytes) const {
    return RemoteAddress{value_ - bytes};
  }
  auto operator<=>(const RemoteAddress&) const = default;

 private:
  std::uint64_t value_ = 0;
};

// A virtual address as an ELF file's headers and symbols give it, before the load bias is added.
class ElfAddress {
 public:
  constexpr ElfAddress() = default;
  explicit constexpr ElfAddress(std::uint64_t value) : value_{value} {}
  [[nodiscard]] constexpr std::uint64_t value() const { return value_; }
  auto operator<=>(const ElfAddress&) const = default;

 private:
  std::uint64_t value_ = 0;
};

// Run-time address = ELF address + load bias, modulo 2^64 (0 for a non-PIE executable).
class LoadBias {
 public:
  constexpr LoadBias() = default;
  explicit constexpr LoadBias(std::uint64_t value) : value_{value} {}
  [[nodiscard]] constexpr std::uint64_t value() const { return value_; }
  [[nodiscard]] constexpr RemoteAddress apply(ElfAddress address) const {
    return RemoteAddress{address.value() + value_};
  }
  [[nodiscard]] constexpr ElfAddress remove(RemoteAddress address) const {
    return ElfAddress{address.value() - value_};
  }
  auto operator<=>(const LoadBias&) const = default;

 private:
  std::uint64_t value_ = 0;
};

}  // namespace pyinject::base
