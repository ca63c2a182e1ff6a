// Statistics of one run, for monitoring programs.
//
// For example:
//   record::StatsReport report;
//   report.verb = "record";
//   report.add(manager.stats());
//   std::cout << record::to_json(report);
#pragma once

#include "pyinject/perfdata/stack_counts.hpp"
#include "pyinject/python/reason.hpp"
#include "pyinject/record/sampler_stats.hpp"
#include "pyinject/targets/manager.hpp"
#include "pyinject/targets/stats.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pyinject::record {

// Duration of a step, over all processes.
struct StepTimes {
  std::uint64_t count = 0;
  std::chrono::nanoseconds total{};
  std::chrono::nanoseconds longest{};

  void add(std::chrono::nanoseconds span);
};

// Durations from a manager's events. Not thread-safe.
struct EventTimes {
  StepTimes detection;  // also of processes that detection skipped
  StepTimes activation;
  StepTimes deactivation;

  void add(const targets::Event& event);
};

// Of a profile that was exported.
struct ProfileCounts {
  std::uint64_t samples = 0;
  std::uint64_t lost = 0;       // samples
  std::uint64_t processes = 0;  // with samples
};

// Profiles that were sent to stores, of record --push.
struct PushStats {
  std::uint64_t pushed = 0;
  std::uint64_t retried = 0;
  std::uint64_t dropped = 0;
  std::uint64_t merged = 0;   // sets of labels without a profile of their own
  std::uint64_t spooled = 0;  // now
};

struct StatsReport {
  std::string verb;  // "record", ...
  std::chrono::system_clock::time_point begun;
  std::chrono::nanoseconds elapsed{};
  int exit_status = 0;
  targets::Stats::Counts counters = targets::Stats{}.counters();
  std::vector<std::pair<python::Reason, std::uint64_t>> reasons;  // only those that occurred
  EventTimes times;
  std::uint64_t unknown_threads = 0;    // RecordSummary::unknown_threads, sum
  perfdata::StackCounts stacks;         // of recordings, sums
  std::optional<SamplerStats> sampler;  // with --engine bpf, sums
  std::optional<ProfileCounts> profile;
  std::optional<PushStats> push;  // with --push

  // Adds the current counters and reasons.
  void add(const targets::Stats& stats);
  void add(const SamplerStats& stats);
};

// docs/stats-json.md describes the format.
[[nodiscard]] std::string to_json(const StatsReport& report);

// "2026-11-20T20:48:40.123456Z"
[[nodiscard]] std::string to_utc(std::chrono::system_clock::time_point time);

}  // namespace pyinject::record
