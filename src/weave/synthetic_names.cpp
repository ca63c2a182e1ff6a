#include "weave/synthetic_names.hpp"

namespace pyinject::weave {

namespace {

// perf may look one byte before an address of a caller up.
constexpr std::uint64_t kStride = 16;
constexpr std::uint64_t kInside = 8;

}  // namespace

std::uint64_t SyntheticNames::address(const std::string& name) {
  if (const auto found = known_.find(name); found != known_.end()) {
    return found->second;
  }
  if ((symbols_.size() + 1) * kStride > kSize) {
    return symbols_.back().address + kInside;
  }
  const auto begin = base_ + symbols_.size() * kStride;
  symbols_.push_back({.address = begin, .size = kStride, .name = name});
  known_.emplace(name, begin + kInside);
  return begin + kInside;
}

}  // namespace pyinject::weave
