#include "why/groups.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

namespace pyinject::why {

namespace {

constexpr std::uint64_t kShort = 100'000'000;  // nanoseconds

}  // namespace

std::string name_of(const Recording& recording, std::uint32_t tid) {
  const auto found = recording.threads.find(tid);
  return found == recording.threads.end() || found->second.name.empty()
             ? fmt::format("thread {}", tid)
             : found->second.name;
}

Groups groups_of(const Recording& recording, const std::map<std::uint32_t, std::uint64_t>& times) {
  Groups groups;
  for (const auto& [tid, time] : times) {
    const bool is_short =
        time < kShort && !(recording.at_begin.contains(tid) && recording.at_end.contains(tid));
    groups[is_short ? "short threads" : base::without_digits(name_of(recording, tid))].push_back(
        tid);
  }
  return groups;
}

}  // namespace pyinject::why
