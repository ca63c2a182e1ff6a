// The memory of a process that is stopped now and then: what is read during a stop is read once.
#pragma once

#include "memory/process_memory.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>

namespace pyinject::memory {

class SteadyMemory : public MemoryReader {
 public:
  explicit SteadyMemory(std::unique_ptr<MemoryReader> memory) : memory_{std::move(memory)} {}

  // STEADY: the process is stopped from now on until the next call.
  void set_steady(bool steady);

  [[nodiscard]] bool read(base::RemoteAddress from, std::span<std::byte> into) const override;
  void read_each(std::span<ReadPiece> pieces) const override;

 private:
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kMostPages = 16384;  // further pages are read each time
  using Page = std::array<std::byte, kPage>;

  // The page that starts at BEGIN; nullptr: unreadable, or too many are kept.
  [[nodiscard]] const Page* page(std::uint64_t begin) const;

  std::unique_ptr<MemoryReader> memory_;
  bool steady_ = false;
  mutable std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;  // null: unreadable
};

}  // namespace pyinject::memory
