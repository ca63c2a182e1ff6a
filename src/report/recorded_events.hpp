// perf's events as the events of a profile.
#pragma once

#include "perfdata/input.hpp"
#include "pyinject/report/profile.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

namespace pyinject::report {

class RecordedEvents {
 public:
  // Adds the events of INPUT to PROFILE. Both must outlive it.
  RecordedEvents(const perfdata::Input& input, Profile& profile);

  // Its index in the profile; nullopt: it is not there.
  [[nodiscard]] std::optional<std::uint32_t> number_of(const perfdata::Event* event) const;
  // Calls TAKE with the SAMPLE of a group as one of each member whose counter has changed, by that
  // much (linux, tools/perf/util/session.c, deliver_sample_group()). False: no member is known.
  bool each_of_group(perfdata::Sample& sample, const std::function<void(perfdata::Sample&)>& take);
  // Call it when the profile has all samples: finds out which events are waits and which are bytes.
  void judge();

 private:
  void judge_waits();
  void judge_calls();
  // The events whose names IS_ONE admits become one, AS, if their samples have bytes.
  void add_up(const char* as, const std::function<bool(const std::string&)>& is_one);

  Profile& profile_;
  std::unordered_map<const perfdata::Event*, std::uint32_t> events_;
  std::unordered_map<std::uint64_t, const perfdata::Event*> members_;          // of groups, by id
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint64_t> counters_;  // by id and thread
  std::set<std::uint32_t> grouped_;  // events that are members of groups
};

}  // namespace pyinject::report
