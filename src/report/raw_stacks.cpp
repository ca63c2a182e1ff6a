#include "report/raw_stacks.hpp"

#include <algorithm>
#include <limits>

namespace pyinject::report {

namespace {

constexpr std::size_t kMostNodes = std::size_t{64} << 20U;
constexpr std::uint64_t kUpper = 0xffff'ffff'0000'0000;

std::uint64_t hash_of(std::uint32_t caller, std::uint32_t pid,
                      std::span<const std::uint64_t> addresses) {
  constexpr std::uint64_t kOdd = 0x9e37'79b9'7f4a'7c15;
  auto hash = std::uint64_t{caller} << 32U | pid;
  for (const auto address : addresses) {
    hash = (hash ^ address) * kOdd;
    hash ^= hash >> 32U;
  }
  return hash;
}

}  // namespace

std::uint32_t RawStacks::child(std::uint32_t caller, std::uint32_t place) {
  const auto [number, fresh] = numbers_.try_emplace(caller, place, nodes_.size());
  if (fresh) {
    nodes_.push_back({.caller = caller, .place = place});
  }
  return number;
}

bool RawStacks::full() const {
  return nodes_.size() >= kMostNodes || known_blocks_.size() >= kMostNodes / kBlock;
}

void RawStacks::grow_slots() {
  constexpr std::size_t kFirst = 1024;  // a power of two
  slots_.assign(slots_.empty() ? kFirst : 2 * slots_.size(), 0);
  for (std::size_t i = 0; i < known_blocks_.size(); ++i) {
    const auto& block = known_blocks_[i].block;
    const auto hash = hash_of(block.caller, block.pid, block.addresses);
    auto place = hash & (slots_.size() - 1);
    while (slots_[place] != 0) {
      place = (place + 1) & (slots_.size() - 1);
    }
    slots_[place] = (hash & kUpper) | (i + 1);
  }
}

RawStacks::Reached& RawStacks::known(const Block& block) {
  if (2 * (known_blocks_.size() + 1) > slots_.size()) {
    grow_slots();
  }
  const auto hash = hash_of(block.caller, block.pid, block.addresses);
  auto place = hash & (slots_.size() - 1);
  for (; slots_[place] != 0; place = (place + 1) & (slots_.size() - 1)) {
    auto& one = known_blocks_[(slots_[place] & ~kUpper) - 1];
    if (((slots_[place] ^ hash) & kUpper) == 0 && one.block == block) {
      return one.reached;
    }
  }
  known_blocks_.push_back({.block = block});
  slots_[place] = (hash & kUpper) | known_blocks_.size();
  return known_blocks_.back().reached;
}

RawStacks::Reached RawStacks::reach(std::uint32_t caller, std::uint32_t pid, unwind::Time time,
                                    std::span<const std::uint64_t> addresses) {
  Reached reached{.node = caller, .until = std::numeric_limits<unwind::Time>::max()};
  for (const auto address : addresses) {
    const auto found = places_.user(pid, time, address);
    reached.from = std::max(reached.from, found.from);
    reached.until = std::min(reached.until, found.until);
    reached.node = child(reached.node, found.place);
  }
  return reached;
}

std::uint32_t RawStacks::add_user(std::uint32_t pid, unwind::Time time,
                                  std::span<const std::uint64_t> addresses) {
  std::uint32_t node = 0;
  for (; addresses.size() >= kBlock; addresses = addresses.subspan(kBlock)) {
    Block block{.caller = node, .pid = pid};
    std::ranges::copy(addresses.first(kBlock), block.addresses.begin());
    auto& reached = known(block);
    if (time < reached.from || time >= reached.until) {
      reached = reach(node, pid, time, block.addresses);
    }
    node = reached.node;
  }
  return reach(node, pid, time, addresses).node;
}

RawStack RawStacks::add(std::uint32_t pid, unwind::Time time, std::span<const std::uint64_t> user,
                        std::span<const std::uint64_t> kernel) {
  if (!kernel.empty()) {
    RawStack stack{.caller = add_user(pid, time, user), .innermost = places_.kernel(kernel.back())};
    for (const auto address : kernel.first(kernel.size() - 1)) {
      stack.caller = child(stack.caller, places_.kernel(address));
    }
    return stack;
  }
  if (user.empty()) {
    return {};
  }
  return {.caller = add_user(pid, time, user.first(user.size() - 1)),
          .innermost = places_.user(pid, time, user.back()).place};
}

}  // namespace pyinject::report
