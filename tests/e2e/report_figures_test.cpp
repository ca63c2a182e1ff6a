// The figures of `report`, compared with those that the test computes from the text of perf script,
// and with perf's own columns.
#include "base/text.hpp"
#include "e2e/both_engines.hpp"
#include "e2e/bpf_recording.hpp"
#include "e2e/take_word.hpp"
#include "support/child_process.hpp"
#include "support/paths.hpp"
#include "support/python_process.hpp"
#include "support/temp_dir.hpp"
#include "support/until_worked.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace pyinject::test {
namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds kFigureWork{200};
// Their names as perf prints them begin with these; the last one is of --off-cpu.
constexpr std::array<std::string_view, 4> kEvents{"cpu-clock", "page-faults",
                                                  "syscalls:sys_enter_write", "context-switches"};

// Sums of samples, or of nanoseconds of waits.
struct Share {
  std::uint64_t self = 0;
  std::uint64_t kernel = 0;  // of self
  std::uint64_t total = 0;
  bool operator==(const Share&) const = default;
};
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const Share& share, std::ostream* stream) {
  *stream << fmt::format("self {} (kernel {}), total {}", share.self, share.kernel, share.total);
}
struct Sums {
  std::uint64_t all = 0;
  std::map<std::string, Share> functions;  // by "NAME FILE"; "": samples without one
};
using SumsOfEvents = std::map<std::string, Sums>;

std::string wanted_event(std::string_view name) {
  const auto* const found = std::ranges::find_if(
      kEvents, [name](std::string_view event) { return name.starts_with(event); });
  return found == kEvents.end() ? fmt::format("unexpected {}", name) : std::string{*found};
}

// "FILE" of "FILE:LINE", too.
std::string without_line(std::string_view file) {
  const auto colon = file.rfind(':');
  const bool line = colon != std::string_view::npos &&
                    base::parse_number<std::uint32_t>(file.substr(colon + 1)).has_value();
  return std::string{line ? file.substr(0, colon) : file};
}

// perf does not name a trampoline in a sample that is older than the record of its memory, such as
// a wait that was long. Such entries get the name that perf prints for the same address in another
// sample.
std::vector<ScriptedSample> named_samples(const std::string& data) {
  constexpr std::string_view kNone = "[unknown]";
  auto samples = scripted_samples(data, {"--max-stack", "4000"});
  std::map<std::uint64_t, std::string> names;
  for (const auto& sample : samples) {
    for (const auto& frame : sample.frames) {
      if (frame.python()) {
        names.emplace(frame.address, frame.symbol);
      }
    }
  }
  std::size_t changed = 0;
  for (auto& sample : samples) {
    bool nameless = false;
    for (auto& frame : sample.frames) {
      const auto known = names.find(frame.address);
      if (frame.symbol == kNone && known != names.end()) {
        frame.symbol = known->second;
        nameless = true;
      }
    }
    changed += nameless ? 1 : 0;
  }
  EXPECT_LE(changed, samples.size() / 50);
  return samples;
}

SumsOfEvents computed_from_text(const std::string& data) {
  SumsOfEvents sums;
  for (const auto& sample : named_samples(data)) {
    const auto event = wanted_event(sample.event);
    const auto weight = event == kEvents.back() ? sample.period : 1;
    std::vector<std::string> functions;  // innermost first
    for (const auto& frame : sample.frames) {
      if (frame.python()) {
        functions.push_back(fmt::format("{} {}", frame.function(), without_line(frame.file())));
      }
    }
    if (functions.empty()) {
      functions.emplace_back();
    }
    auto& all = sums[event];
    all.all += weight;
    auto& innermost = all.functions[functions.front()];
    innermost.self += weight;
    innermost.kernel += sample.user || sample.frames.empty() ? 0 : weight;
    for (const auto& function : std::set<std::string>{functions.begin(), functions.end()}) {
      all.functions[function].total += weight;
    }
  }
  return sums;
}

json reported(const std::string& data) {
  const auto shown = run({tool(), "report", "--json", data});
  EXPECT_EQ(shown.status, ExitStatus{}) << shown.err;
  return json::parse(shown.out);
}

SumsOfEvents told_by_report(const std::string& data) {
  SumsOfEvents sums;
  const auto shown = reported(data);
  for (const auto& table : shown.at("tables")) {
    auto& all = sums[table.at("event")];
    all.all = table.at("all");
    auto rows = table.at("rows");
    if (table.contains("others")) {
      rows.push_back(table.at("others"));
    }
    for (const auto& row : rows) {
      const auto name = row.at("name").get<std::string>();
      const auto key = name.empty() ? "" : fmt::format("{} {}", name, row.value("file", ""));
      all.functions[key] = {
          .self = row.at("self"), .kernel = row.at("kernel"), .total = row.at("total")};
    }
  }
  return sums;
}

void expect_same(const SumsOfEvents& got, const SumsOfEvents& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (const auto& [event, sums] : expected) {
    ASSERT_TRUE(got.contains(event)) << event;
    EXPECT_EQ(got.at(event).all, sums.all) << event;
    EXPECT_EQ(got.at(event).functions, sums.functions) << event;
  }
}

// What --python-only leaves: the time of the kernel counts for the Python function that called it.
SumsOfEvents without_kernel(SumsOfEvents sums) {
  for (auto& [event, all] : sums) {
    for (auto& [function, share] : all.functions) {
      share.kernel = function.empty() ? share.kernel : 0;
    }
  }
  return sums;
}

class ReportFigures : public testing::TestWithParam<Recorded> {
 protected:
  void SetUp() override {
    if (const auto lacks = bpf_engine_lacks(); GetParam().engine == "bpf" && !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
  }
  [[nodiscard]] std::string data() const { return directory_ / "perf.data"; }
  // A copy that only has the Python functions of callchains.
  [[nodiscard]] std::string reduced() const {
    auto path = directory_ / "python.data";
    const auto woven = run({tool(), "weave", "--python-only", "-q", data(), "-o", path});
    EXPECT_EQ(woven.status, ExitStatus{}) << woven.err;
    return path;
  }
  void record(std::vector<std::string> options) const {
    const PythonProcess target{GetParam().python, target_source("figures.py")};
    std::vector<std::string> command{tool(),     "record",
                                     "-p",       std::to_string(target.pid().value()),
                                     "--engine", GetParam().engine,
                                     "-F",       "1999",
                                     "-o",       data()};
    command.insert(command.end(), options.begin(), options.end());
    command.emplace_back("--");
    const auto clock = until_worked(target.pid(), kFigureWork);
    command.insert(command.end(), clock.begin(), clock.end());
    const auto recorded = run(command);
    ASSERT_EQ(recorded.status, ExitStatus{}) << recorded.err;
  }

 private:
  TempDir directory_;
};

TEST_P(ReportFigures, AreThoseOfTheTextOfPerfScript) {
  std::vector<std::string> options{"-e", "cpu-clock,page-faults", "--off-cpu", "-m", "8M"};
  if (has_tracepoints()) {
    options.insert(options.end(), {"-e", std::string{kEvents[2]}});
  }
  if (GetParam().engine == "bpf") {
    options.insert(options.end(), {"--lines", "--gil"});
  }
  ASSERT_NO_FATAL_FAILURE(record(options));
  const auto got = told_by_report(data());
  ASSERT_EQ(got.size(), has_tracepoints() ? 4U : 3U);
  EXPECT_GE(got.at("cpu-clock").all, 100U);
  EXPECT_TRUE(got.at("cpu-clock").functions.contains("burn <string>"));
  expect_same(got, computed_from_text(data()));
  expect_same(told_by_report(reduced()), without_kernel(got));
}

// Samples by "NAME FILE" and their share as perf prints it; "": without a Python function.
struct PerfsSelf {
  std::uint64_t samples = 0;
  std::string percent;
};
std::map<std::string, PerfsSelf> self_column_of_perf(const std::string& data) {
  const auto shown = run(
      {"perf", "report", "--stdio", "--no-children", "-g", "none", "-s", "sym", "-n", "-i", data});
  EXPECT_EQ(shown.status, ExitStatus{}) << shown.err;
  std::map<std::string, PerfsSelf> rows;
  for (auto line : base::split(shown.out, '\n')) {
    line = base::trim(line);
    if (line.empty() || line.front() == '#') {
      continue;
    }
    const auto percent = take_word(line);
    const auto samples = base::parse_number<std::uint64_t>(take_word(line));
    EXPECT_TRUE(samples) << shown.out;
    take_word(line);  // "[.]"
    const ScriptFrame frame{.symbol = std::string{line}};
    auto& row = rows[frame.python() ? fmt::format("{} {}", frame.function(), frame.file()) : ""];
    row.samples += samples.value_or(0);
    row.percent = percent;
  }
  return rows;
}

class PythonOnly : public ReportFigures {};

TEST_P(PythonOnly, SelfIsPerfsSelfColumn) {
  ASSERT_NO_FATAL_FAILURE(record({"-e", "cpu-clock", "--python-only"}));
  const auto got = told_by_report(data()).at("cpu-clock");
  EXPECT_GE(got.all, 100U);
  auto expected = self_column_of_perf(data());
  for (const auto& [function, share] : got.functions) {
    const auto& row = expected[function];
    EXPECT_EQ(share.self, row.samples) << function;
    if (share.self != 0 && !function.empty()) {
      EXPECT_EQ(row.percent, fmt::format("{:.2f}%", 100.0 * static_cast<double>(share.self) /
                                                        static_cast<double>(got.all)))
          << function;
    }
    expected.erase(function);
  }
  EXPECT_EQ(expected.size(), 0U) << expected.begin()->first;
}

std::vector<Recorded> oldest_and_newest() {
  std::vector<Recorded> all;
  for (const int minor : {12, 15}) {
    if (const auto python = find_interpreter({.minor = minor, .trampoline = true})) {
      all.push_back({.python = *python, .engine = "trampoline"});
      all.push_back({.python = *python, .engine = "bpf"});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Pythons, ReportFigures, testing::ValuesIn(recordings()), recorded_name);
INSTANTIATE_TEST_SUITE_P(Pythons, PythonOnly, testing::ValuesIn(oldest_and_newest()),
                         recorded_name);

}  // namespace
}  // namespace pyinject::test
