#include "bpf/placed_groups.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace pyinject::bpf {

namespace {

struct Group {
  std::span<const sampled_frame> frames;
  std::int64_t place = 0;
};

}  // namespace

std::vector<sampled_frame> in_order_of_places(std::span<const sampled_frame> words) {
  std::vector<Group> groups;
  std::int64_t limit = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = -1;  // place in the current interpreter; -1: none yet
  std::size_t begin = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].code == SAMPLER_PLACE) {
      last = words[i].where;
      groups.push_back({.frames = words.subspan(begin, i - begin), .place = last});
      begin = i + 1;
    } else if (words[i].code == SAMPLER_STATE_END) {
      limit = words[i].where != 0 ? std::min(limit, last) : limit;
      last = -1;
      begin = i + 1;
    }
  }
  // The C stack grows towards lower addresses.
  std::ranges::stable_sort(groups, {}, &Group::place);
  std::vector<sampled_frame> result;
  for (const auto& group : groups) {
    if (group.place <= limit) {
      result.insert(result.end(), group.frames.begin(), group.frames.end());
    }
  }
  return result;
}

}  // namespace pyinject::bpf
