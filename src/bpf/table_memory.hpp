// Memory of unwind tables and their rules that the BPF program reads (sampler_native.bpf.h).
#pragma once

#include "bpf/sampler_native.h"
#include "elf/unwind_table.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace pyinject::bpf {

// Words in segments of equal size, each a map of its own. What was allocated is never freed.
class TableSegments {
 public:
  struct Place {
    std::uint16_t segment = 0;
    std::uint32_t word = 0;
  };
  // MAP: descriptor of the map of all segments, which must outlive this object.
  explicit TableSegments(int map) : map_{map} {}
  ~TableSegments();
  TableSegments(const TableSegments&) = delete;
  TableSegments& operator=(const TableSegments&) = delete;

  // Words that are free in the last segment.
  [[nodiscard]] std::size_t room() const { return NATIVE_SEGMENT_WORDS - used_; }
  // False: there can be no more.
  [[nodiscard]] bool add();
  // In one segment; begins another one if the last has not that much room. nullopt: there is none.
  [[nodiscard]] std::optional<Place> allocate(std::size_t words);
  [[nodiscard]] std::uint32_t* words(const Place& place) const {
    return memory_[place.segment] + place.word;
  }

 private:
  int map_;
  std::vector<std::uint32_t*> memory_;
  std::size_t used_ = NATIVE_SEGMENT_WORDS;  // of the last segment
};

// The rules to which rows of the tables refer.
class TableRules {
 public:
  // MAP: descriptor of the map of rules.
  explicit TableRules(int map);
  ~TableRules();
  TableRules(const TableRules&) = delete;
  TableRules& operator=(const TableRules&) = delete;

  // False: the BPF program cannot get any.
  [[nodiscard]] bool usable() const { return memory_ != nullptr; }
  [[nodiscard]] elf::UnwindRules& rules() { return rules_; }
  // Makes new ones known to the program. Call it before tables that refer to them.
  void publish();

 private:
  elf::UnwindRules rules_;
  std::size_t published_ = 0;
  unwind_rule* memory_ = nullptr;
};

// Does nothing, and returns false, in a build without BPF.
bool set_entry(int map, std::uint32_t key, const void* value);
void drop_entry(int map, std::uint32_t key);

}  // namespace pyinject::bpf
