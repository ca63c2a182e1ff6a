// The memory of a fictitious target.
#pragma once

#include "memory/process_memory.hpp"

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

namespace pyinject::test {

// Only bytes that were put there can be read.
class FakeMemory : public memory::MemoryReader {
 public:
  [[nodiscard]] bool read(base::RemoteAddress from, std::span<std::byte> into) const override {
    ++reads_;
    auto address = from.value();
    for (auto& byte : into) {
      const auto page = pages_.find(address / kPage);
      if (page == pages_.end() || !page->second.there[address % kPage]) {
        return false;
      }
      byte = page->second.bytes.at(address % kPage);
      ++address;
    }
    return true;
  }

  void put(std::uint64_t address, std::span<const std::byte> bytes) {
    for (const auto byte : bytes) {
      auto& page = pages_[address / kPage];
      page.bytes.at(address % kPage) = byte;
      page.there.set(address % kPage);
      ++address;
    }
  }
  template <typename Value>
  requires std::is_trivially_copyable_v<Value>
  void put(std::uint64_t address, const Value& value) {
    put(address, std::as_bytes(std::span{&value, 1}));
  }
  void put_text(std::uint64_t address, std::string_view text) {
    put(address, std::as_bytes(std::span{text}));
  }
  void put_zeros(std::uint64_t address, std::size_t count) {
    put(address, std::vector<std::byte>(count));
  }
  void take(std::uint64_t address) { pages_[address / kPage].there.reset(address % kPage); }
  [[nodiscard]] std::size_t reads() const { return reads_; }

 private:
  static constexpr std::size_t kPage = 4096;
  struct Page {
    std::array<std::byte, kPage> bytes{};
    std::bitset<kPage> there;
  };
  std::unordered_map<std::uint64_t, Page> pages_;
  mutable std::size_t reads_ = 0;
};

}  // namespace pyinject::test
