// Callchains as paths in a tree of places, before these have names.
#pragma once

#include "report/code_places.hpp"
#include "report/pair_numbers.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace pyinject::report {

// Innermost places are nearly as many as samples, and become few functions. They are kept apart
// from the tree, which would else be too large for the processor's caches.
struct RawStack {
  static constexpr auto kNone = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t caller = 0;         // a node; 0: there is none
  std::uint32_t innermost = kNone;  // a place; kNone: the stack is empty
};

class RawStacks {
 public:
  // A tree as that of a Profile.
  struct Node {
    std::uint32_t caller = 0;
    std::uint32_t place = 0;
  };
  // PLACES must outlive this object.
  explicit RawStacks(CodePlaces& places) : places_{places} {}

  // Addresses in user space and in the kernel, outermost first.
  RawStack add(std::uint32_t pid, unwind::Time time, std::span<const std::uint64_t> user,
               std::span<const std::uint64_t> kernel);
  // Whether there is no room for another stack.
  [[nodiscard]] bool full() const;
  // A node's caller precedes it.
  [[nodiscard]] const std::vector<Node>& nodes() const { return nodes_; }

 private:
  // Samples have most of their callers in common. Blocks of addresses that were seen before are
  // looked up as one: a look-up for each address would take most of the time of a large file.
  static constexpr std::size_t kBlock = 8;
  struct Block {
    std::array<std::uint64_t, kBlock> addresses{};
    std::uint32_t caller = 0;
    std::uint32_t pid = 0;
    bool operator==(const Block&) const = default;
  };
  // Where a block leads to, in [from, until).
  struct Reached {
    std::uint32_t node = 0;
    unwind::Time from = 0;
    unwind::Time until = 0;
  };
  std::uint32_t child(std::uint32_t caller, std::uint32_t place);
  struct KnownBlock {
    Block block;
    Reached reached{};
  };
  // Refers to known_blocks_. Adds the block if it is new.
  Reached& known(const Block& block);
  void grow_slots();
  Reached reach(std::uint32_t caller, std::uint32_t pid, unwind::Time time,
                std::span<const std::uint64_t> addresses);
  std::uint32_t add_user(std::uint32_t pid, unwind::Time time,
                         std::span<const std::uint64_t> addresses);

  CodePlaces& places_;
  std::vector<Node> nodes_{Node{}};
  PairNumbers numbers_;
  std::vector<KnownBlock> known_blocks_;
  // A hash table: the upper half of a block's hash, and one more than its number; 0: free.
  std::vector<std::uint64_t> slots_;
};

}  // namespace pyinject::report
