#include "report/wall_clock.hpp"

#include "report/selection.hpp"
#include "report/waits.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pyinject::report {

namespace {

std::optional<std::uint32_t> event_of(const Profile& profile, Unit unit) {
  const auto found = std::ranges::find(profile.events, unit, &Event::unit);
  return found == profile.events.end()
             ? std::nullopt
             : std::optional{static_cast<std::uint32_t>(found - profile.events.begin())};
}

// Below the stacks of waits, what they are for.
class WaitLeaves {
 public:
  explicit WaitLeaves(Profile& profile) : profile_{profile} {
    profile_.objects.push_back({.path = "[waits]"});
  }

  // The node of WHAT below STACK.
  std::uint32_t node(std::uint32_t stack, const std::string& what) {
    const auto [entry, fresh] = nodes_.try_emplace({stack, what}, profile_.nodes.size());
    if (fresh) {
      profile_.nodes.push_back({.caller = stack, .frame = frame(what)});
    }
    return static_cast<std::uint32_t>(entry->second);
  }

 private:
  std::uint32_t frame(const std::string& what) {
    const auto [entry, fresh] = frames_.try_emplace(what, profile_.frames.size());
    if (fresh) {
      const auto object = static_cast<std::uint32_t>(profile_.objects.size() - 1);
      profile_.frames.push_back(
          {.function = static_cast<std::uint32_t>(profile_.functions.size())});
      profile_.functions.push_back(
          {.kind = Kind::kNative, .name = "waits: " + what, .object = object});
    }
    return static_cast<std::uint32_t>(entry->second);
  }

  Profile& profile_;
  std::map<std::string, std::size_t> frames_;
  std::map<std::pair<std::uint32_t, std::string>, std::size_t> nodes_;
};

}  // namespace

bool add_wall_clock(Profile& profile) {
  const auto clock = event_of(profile, Unit::kNanoseconds);
  const auto waits = event_of(profile, Unit::kWaits);
  if (!clock || !waits) {
    return false;
  }
  std::map<std::uint32_t, std::string> whats;  // by stack of a wait
  {
    const ViewOptions all;
    Selection selection{profile, all};
    for (const auto& sample : profile.samples) {
      if (sample.event == *waits && !whats.contains(sample.stack)) {
        whats.emplace(sample.stack, awaited_by(profile, selection.facts_of(sample.stack)));
      }
    }
  }
  WaitLeaves leaves{profile};
  std::vector<Sample> both;
  for (auto& sample : profile.samples) {
    if (sample.event == *clock || sample.event == *waits) {
      both.push_back(sample);
      if (sample.event == *waits) {
        both.back().stack = leaves.node(sample.stack, whats.at(sample.stack));
      }
      both.back().event = 0;
    }
    ++sample.event;
  }
  profile.events.insert(profile.events.begin(), {.name = "wall clock", .unit = Unit::kCalls});
  profile.samples.insert(profile.samples.end(), both.begin(), both.end());
  std::ranges::stable_sort(profile.samples, {}, &Sample::time);
  return true;
}

}  // namespace pyinject::report
