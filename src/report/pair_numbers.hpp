// Numbers of pairs of numbers, such as the nodes of a call tree: of caller and frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace pyinject::report {

// A hash table for millions of pairs: some 24 bytes each, in one piece of memory.
class PairNumbers {
 public:
  // The number of the pair, and whether the pair is new: FRESH is its number then.
  std::pair<std::uint32_t, bool> try_emplace(std::uint32_t first, std::uint32_t second,
                                             std::size_t fresh) {
    if (4 * (count_ + 1) > 3 * slots_.size()) {
      grow();
    }
    auto& slot = slots_[place_of(first, second)];
    if (slot.number != kFree) {
      return {slot.number, false};
    }
    slot = {.first = first, .second = second, .number = static_cast<std::uint32_t>(fresh)};
    ++count_;
    return {slot.number, true};
  }

 private:
  static constexpr auto kFree = std::numeric_limits<std::uint32_t>::max();
  struct Slot {
    std::uint32_t first = 0;
    std::uint32_t second = 0;
    std::uint32_t number = kFree;
  };

  // Where the pair is, or belongs. At least a quarter of the slots is free.
  [[nodiscard]] std::size_t place_of(std::uint32_t first, std::uint32_t second) const {
    const auto mask = slots_.size() - 1;
    auto place = mixed(std::uint64_t{first} << 32U | second) & mask;
    while (slots_[place].number != kFree &&
           (slots_[place].first != first || slots_[place].second != second)) {
      place = (place + 1) & mask;
    }
    return place;
  }

  // MurmurHash3's final mixer. Nearby pairs are the rule, and must not get the same slots.
  [[nodiscard]] static std::size_t mixed(std::uint64_t key) {
    key = (key ^ key >> 33U) * 0xff51'afd7'ed55'8ccd;
    key = (key ^ key >> 33U) * 0xc4ce'b9fe'1a85'ec53;
    return key ^ key >> 33U;
  }

  void grow() {
    constexpr std::size_t kFirst = 1024;  // a power of two
    std::vector<Slot> old(slots_.empty() ? kFirst : 2 * slots_.size());
    old.swap(slots_);
    for (const auto& slot : old) {
      if (slot.number != kFree) {
        slots_[place_of(slot.first, slot.second)] = slot;
      }
    }
  }

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace pyinject::report
