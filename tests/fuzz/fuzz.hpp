// Shared by the fuzzers: parsing an input and reporting failures.
#pragma once

#include "memory/process_memory.hpp"
#include "pyinject/base/remote_address.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace pyinject::fuzz {

// The oracle: aborts the fuzzer with WHAT unless HOLDS.
void require(bool holds, std::string_view what);

// Reads an input from its start; bytes beyond its end are zero.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : left_{std::as_bytes(std::span{data, size})} {}

  template <typename Value>
  requires std::is_trivially_copyable_v<Value>
  [[nodiscard]] Value take() {
    Value value{};
    const auto bytes = take_bytes(sizeof value);
    if (!bytes.empty()) {
      std::memcpy(&value, bytes.data(), bytes.size());
    }
    return value;
  }
  [[nodiscard]] std::span<const std::byte> take_bytes(std::size_t most) {
    const auto bytes = left_.first(std::min(most, left_.size()));
    left_ = left_.subspan(bytes.size());
    return bytes;
  }
  [[nodiscard]] std::span<const std::byte> rest() const { return left_; }
  [[nodiscard]] std::string_view text() const {
    return {reinterpret_cast<const char*>(left_.data()), left_.size()};
  }

 private:
  std::span<const std::byte> left_;
};

// The memory of a hostile target: every address of the lower half reads some byte of the input, so
// that any pointer leads somewhere and lists form cycles.
class HostileMemory : public memory::MemoryReader {
 public:
  explicit HostileMemory(std::span<const std::byte> bytes) : bytes_{bytes} {}
  [[nodiscard]] bool read(base::RemoteAddress from, std::span<std::byte> into) const override;
  [[nodiscard]] std::uint64_t reads() const { return reads_; }

 private:
  std::span<const std::byte> bytes_;
  mutable std::uint64_t reads_ = 0;
};

// Each fuzzer defines this: processes one input.
void run(Input input);

// The same, but aborts the fuzzer if it uses more CPU time than an input of that size may, as
// nested loops over the input do.
void run_in_time(const std::uint8_t* data, std::size_t size);

// A file in memory that contains these bytes.
[[nodiscard]] base::UniqueFd file_with(std::span<const std::byte> bytes);

// False: TEXT contains control characters or is not valid UTF-8, which must never reach a terminal.
[[nodiscard]] bool is_printable(std::string_view text);

}  // namespace pyinject::fuzz
