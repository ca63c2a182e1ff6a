#include "report/recorded_events.hpp"

#include "report/names.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

namespace pyinject::report {

namespace {

std::string_view without_modifiers(std::string_view name) {
  constexpr std::string_view kModifiers = "ukhGHpPSDIWeb";
  const auto colon = name.rfind(':');
  const auto modifiers = colon == std::string_view::npos ? "" : name.substr(colon + 1);
  return !modifiers.empty() && modifiers.find_first_not_of(kModifiers) == std::string_view::npos
             ? name.substr(0, colon)
             : name;
}

// The name without modifiers; the two kinds of cores of a hybrid processor count one event.
std::string event_key(std::string_view name) {
  for (const std::string_view unit : {"cpu_core/", "cpu_atom/", "cpu_lowpower/"}) {
    if (name.starts_with(unit)) {
      name.remove_prefix(unit.size());
      return std::string{name.substr(0, name.find('/'))};
    }
  }
  name = without_modifiers(name);
  if (const auto slash = name.find('/'); name.starts_with("context-switches/")) {
    name = name.substr(0, slash);
  }
  return std::string{name};
}

}  // namespace

RecordedEvents::RecordedEvents(const perfdata::Input& input, Profile& profile) : profile_{profile} {
  std::map<std::string, std::uint32_t> known;
  for (const auto& event : input.events()) {
    if (event.is_dummy()) {
      continue;
    }
    auto key = event_key(event.name.empty() ? "unknown" : event.name);
    const auto [entry, fresh] =
        known.try_emplace(key, static_cast<std::uint32_t>(profile_.events.size()));
    if (fresh) {
      const bool time = key == "cpu-clock" || key == "task-clock";
      profile_.events.push_back(
          {.name = std::move(key), .unit = time ? Unit::kNanoseconds : Unit::kSamples});
    }
    events_.emplace(&event, entry->second);
    for (const auto id : event.ids) {
      members_.emplace(id, &event);
    }
  }
}

std::optional<std::uint32_t> RecordedEvents::number_of(const perfdata::Event* event) const {
  const auto found = events_.find(event);
  return found == events_.end() ? std::nullopt : std::optional{found->second};
}

bool RecordedEvents::each_of_group(perfdata::Sample& sample,
                                   const std::function<void(perfdata::Sample&)>& take) {
  bool known = false;
  for (const auto& [id, value] : std::exchange(sample.group, {})) {
    const auto member = members_.find(id);
    if (member == members_.end()) {
      continue;
    }
    known = true;
    sample.event = member->second;
    grouped_.insert(events_.at(sample.event));
    // The counters of inherited events are those of each thread (perf 6.11).
    auto& last = counters_[{id, sample.event->attr.inherit != 0 ? sample.tid : 0}];
    sample.period = value - std::exchange(last, value);
    if (sample.period != 0) {
      take(sample);
    }
  }
  return known;
}

// `record --off-cpu` replaces the period of a switch, 1, by the time until the thread ran again. In
// a group, the period is a number of switches.
void RecordedEvents::judge_waits() {
  for (std::uint32_t i = 0; i < profile_.events.size(); ++i) {
    auto& event = profile_.events[i];
    if (event.name == "context-switches" && !grouped_.contains(i) &&
        std::ranges::any_of(profile_.samples, [&](const Sample& sample) {
          return sample.event == i && sample.period > 1;
        })) {
      event.unit = Unit::kWaits;
    }
  }
}

// `record --what io`, `net` and `locks` replace the period of a call, 1, by the time that it took.
void RecordedEvents::judge_calls() {
  std::vector<bool> timed(profile_.events.size());
  for (const auto& sample : profile_.samples) {
    timed[sample.event] = timed[sample.event] || sample.period > 1;
  }
  for (const auto& [event, number] : events_) {
    auto& one = profile_.events[number];
    if (timed[number] && !grouped_.contains(number) && one.unit == Unit::kSamples &&
        one.name.starts_with("syscalls:sys_enter_") &&
        event->samples_each_hit_of(event->attr.config)) {
      one.unit = Unit::kCalls;
    }
  }
}

// `record --what memory` replaces the period of a call, 1, by the number of bytes. What it was that
// mapped them, the C functions show. The same of blocks of the allocator.
void RecordedEvents::judge() {
  judge_waits();
  constexpr auto kCalls =
      std::to_array<std::string_view>({"syscalls:sys_enter_mmap", "syscalls:sys_enter_mremap",
                                       "syscalls:sys_enter_brk", "syscalls:sys_enter_mprotect"});
  add_up(kMappedMemory,
         [&](const std::string& name) { return std::ranges::find(kCalls, name) != kCalls.end(); });
  // record/malloc_probes.cpp, in the group of a session (perf/uprobe_events.hpp).
  add_up(kAllocatedMemory, [](const std::string& name) {
    return name.starts_with("perf_pyinject_") && name.find(":heap_alloc") != std::string::npos;
  });
  judge_calls();  // those that are left
}

void RecordedEvents::add_up(const char* as, const std::function<bool(const std::string&)>& is_one) {
  std::vector<bool> maps;
  maps.reserve(profile_.events.size());
  for (const auto& event : profile_.events) {
    maps.push_back(is_one(event.name));
  }
  for (const auto& [event, number] : events_) {
    maps[number] = maps[number] && event->samples_each_hit_of(event->attr.config);
  }
  const auto first = std::ranges::find(maps, true) - maps.begin();
  if (std::ranges::none_of(profile_.samples, [&](const Sample& sample) {
        return maps[sample.event] && sample.period > 1;
      })) {
    return;
  }
  profile_.events[static_cast<std::size_t>(first)] = {.name = as, .unit = Unit::kBytes};
  for (auto& sample : profile_.samples) {
    sample.event = maps[sample.event] ? static_cast<std::uint32_t>(first) : sample.event;
  }
}

}  // namespace pyinject::report
