#include "pyinject/record/stats_report.hpp"

#include "pyinject/python/reason.hpp"
#include "pyinject/version.hpp"

#include <fmt/chrono.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <string_view>

namespace pyinject::record {

namespace {

using nlohmann::ordered_json;
using std::chrono::duration_cast;
using std::chrono::microseconds;

ordered_json json_of(const StepTimes& times) {
  return {{"count", times.count},
          {"total", duration_cast<microseconds>(times.total).count()},
          {"longest", duration_cast<microseconds>(times.longest).count()}};
}

// The counters of --engine bpf with their names in JSON.
using SamplerCounter = std::pair<std::string_view, std::uint64_t SamplerStats::*>;
constexpr auto kSamplerCounters = std::to_array<SamplerCounter>({
    {"samples", &SamplerStats::samples},
    {"matched", &SamplerStats::matched},
    {"with_frames", &SamplerStats::with_frames},
    {"unmatched", &SamplerStats::unmatched},
    {"not_joined", &SamplerStats::not_joined},
    {"python_only", &SamplerStats::python_only},
    {"python_only_cut", &SamplerStats::python_only_cut},
    {"state_found", &SamplerStats::state_found},
    {"state_searched", &SamplerStats::state_searched},
    {"no_state", &SamplerStats::no_state},
    {"no_frames", &SamplerStats::no_frames},
    {"truncated", &SamplerStats::truncated},
    {"unreadable", &SamplerStats::unreadable},
    {"gil_held", &SamplerStats::gil_held},
    {"gil_waited_for", &SamplerStats::gil_waited_for},
    {"lost", &SamplerStats::lost},
    {"lost_names", &SamplerStats::lost_names},
    {"by_clock", &SamplerStats::by_clock},
    {"traced", &SamplerStats::traced},
});

}  // namespace

void StepTimes::add(std::chrono::nanoseconds span) {
  ++count;
  total += span;
  longest = std::max(longest, span);
}

void EventTimes::add(const targets::Event& event) {
  switch (event.kind) {
    case targets::EventKind::kDetected:
    case targets::EventKind::kSkipped:
      detection.add(event.duration);
      break;
    case targets::EventKind::kActivated:
      activation.add(event.duration);
      break;
    case targets::EventKind::kDeactivated:
      deactivation.add(event.duration);
      break;
    case targets::EventKind::kFailed:  // activation or deactivation
      break;
  }
}

std::string to_utc(std::chrono::system_clock::time_point time) {
  const auto since = duration_cast<microseconds>(time.time_since_epoch());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z",
                     fmt::gmtime(static_cast<std::time_t>(seconds.count())),
                     (since - seconds).count());
}

void StatsReport::add(const targets::Stats& stats) {
  const auto now = stats.counters();
  for (std::size_t i = 0; i < counters.size(); ++i) {
    counters.at(i).second += now.at(i).second;
  }
  std::map<python::Reason, std::uint64_t> sums{reasons.begin(), reasons.end()};
  for (const auto reason : python::all_reasons()) {
    if (const auto count = stats.of(reason); count != 0) {
      sums[reason] += count;
    }
  }
  reasons.assign(sums.begin(), sums.end());
}

void StatsReport::add(const SamplerStats& stats) {
  if (!sampler) {
    sampler.emplace();
  }
  for (const auto& [name, member] : kSamplerCounters) {
    *sampler.*member += stats.*member;
  }
  sampler->processor_time += stats.processor_time;
}

std::string to_json(const StatsReport& report) {
  ordered_json all;
  all["schema"] = 1;
  all["version"] = PYINJECT_VERSION;
  all["verb"] = report.verb;
  all["begun"] = to_utc(report.begun);
  all["elapsed_us"] = duration_cast<microseconds>(report.elapsed).count();
  all["exit_status"] = report.exit_status;
  auto& counters = all["counters"] = ordered_json::object();
  for (const auto& [name, count] : report.counters) {
    counters[name] = count;
  }
  auto& reasons = all["reasons"] = ordered_json::object();
  for (const auto& [reason, count] : report.reasons) {
    reasons[std::string{python::name(reason)}] = count;
  }
  all["durations_us"] = {{"detection", json_of(report.times.detection)},
                         {"activation", json_of(report.times.activation)},
                         {"deactivation", json_of(report.times.deactivation)}};
  all["threads_without_earlier_functions"] = report.unknown_threads;
  if (report.stacks.all() != 0) {
    auto& stacks = all["stacks"] = ordered_json::object();
    for (std::size_t i = 0; i < perfdata::kStackKinds; ++i) {
      stacks[std::string{perfdata::name(static_cast<perfdata::StackKind>(i))}] =
          report.stacks.counts.at(i);
    }
  }
  if (report.sampler) {
    auto& sampler = all["bpf"] = ordered_json::object();
    for (const auto& [name, member] : kSamplerCounters) {
      sampler[std::string{name}] = *report.sampler.*member;
    }
    sampler["collector_us"] = duration_cast<microseconds>(report.sampler->processor_time).count();
  }
  if (report.profile) {
    all["profile"] = {{"samples", report.profile->samples},
                      {"lost", report.profile->lost},
                      {"processes", report.profile->processes}};
  }
  if (report.push) {
    all["push"] = {{"pushed", report.push->pushed},
                   {"retried", report.push->retried},
                   {"dropped", report.push->dropped},
                   {"merged", report.push->merged},
                   {"spooled", report.push->spooled}};
  }
  return all.dump(2) + "\n";
}

}  // namespace pyinject::record
