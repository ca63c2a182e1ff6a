#include "pyinject/record/stats_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace pyinject::record {
namespace {

using python::Reason;
using std::chrono::microseconds;

TEST(StatsReport, HasEveryCounterAndTheReasonsThatWereMet) {
  targets::Stats stats;
  stats.activated = 2;
  stats.deactivated = 1;
  stats.count_refusal(Reason::kNotPython);
  stats.count_refusal(Reason::kTraced);
  stats.count_deactivation_failure(Reason::kStopDeadline);
  StatsReport report;
  report.verb = "record";
  report.exit_status = 125;
  report.add(stats);
  const auto json = nlohmann::json::parse(record::to_json(report));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["verb"], "record");
  EXPECT_EQ(json["exit_status"], 125);
  EXPECT_EQ(json["counters"], nlohmann::json::parse(R"({
    "Activated": 2, "Deactivated": 1, "SkippedNotPython": 1, "SkippedTooOld": 0,
    "SkippedNoTramp": 0, "SkippedNoSymbols": 0, "ActivateFailed": 1, "DeactivateFailed": 1})"));
  EXPECT_EQ(json["reasons"],
            nlohmann::json::parse(R"({"not_python": 1, "traced": 1, "stop_deadline": 1})"));
}

TEST(StatsReport, AddsUpTheTimesOfEachStep) {
  StatsReport report;
  const auto add = [&](targets::EventKind kind, int span) {
    report.times.add({.kind = kind, .pid = base::Pid{1}, .duration = microseconds{span}});
  };
  add(targets::EventKind::kDetected, 300);
  add(targets::EventKind::kSkipped, 100);
  add(targets::EventKind::kActivated, 1000);
  add(targets::EventKind::kFailed, 5'000'000);
  add(targets::EventKind::kDeactivated, 50);
  const auto json = nlohmann::json::parse(record::to_json(report));
  EXPECT_EQ(json["durations_us"], nlohmann::json::parse(R"({
    "detection": {"count": 2, "total": 400, "longest": 300},
    "activation": {"count": 1, "total": 1000, "longest": 1000},
    "deactivation": {"count": 1, "total": 50, "longest": 50}})"));
}

TEST(StatsReport, TimesAreUtcWithMicroseconds) {
  EXPECT_EQ(to_utc(std::chrono::system_clock::time_point{microseconds{1'000'000'007}}),
            "1970-01-01T00:16:40.000007Z");
}

}  // namespace
}  // namespace pyinject::record
