// What the samples of an event are called in pprof's formats.
#pragma once

#include "pyinject/report/profile.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace pyinject::exports {

// Two values: the number of samples, and the sum of their periods.
struct EventValues {
  std::string count;  // "samples"; its unit is "count"
  std::string sum;    // "cpu", "cycles"
  std::string unit;   // of the sum: "nanoseconds", "bytes", "count"
};

// By event. Go's names for the first one that is not a wait: "samples" and "cpu".
[[nodiscard]] inline std::vector<EventValues> values_of_events(const report::Profile& profile) {
  std::vector<EventValues> values;
  bool first = true;
  for (const auto& event : profile.events) {
    if (event.unit == report::Unit::kWaits) {
      values.push_back({.count = "waits", .sum = "wait", .unit = "nanoseconds"});
      continue;
    }
    const bool time = event.unit == report::Unit::kNanoseconds;
    values.push_back({.count = first ? "samples" : event.name + " samples",
                      .sum = first && time ? "cpu" : event.name,
                      .unit = has_time(event.unit)                 ? "nanoseconds"
                              : event.unit == report::Unit::kBytes ? "bytes"
                                                                   : "count"});
    first = false;
  }
  return values;
}

}  // namespace pyinject::exports
