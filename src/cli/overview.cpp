#include "cli/overview.hpp"

#include "base/columns.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "bpf/sampler.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"
#include "pyinject/python/detector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include <unistd.h>

namespace pyinject::cli {

namespace {

using targets::ProcessStatus;

constexpr std::size_t kMostListed = 18;

std::vector<std::string> row_of(const ProcessStatus& status, const CpuShares& shares) {
  const auto share = shares.find(status.pid);
  const auto or_dash = [](const std::string& text) {
    return text.empty() ? "-" : base::printable(text);
  };
  return {std::to_string(status.pid.value()), or_dash(status.user),
          share == shares.end() ? "-" : fmt::format("{:.0f}", 100 * share->second),
          status.version ? python::to_string(*status.version) : "-", or_dash(status.command)};
}

// The commands name the busiest process that can be recorded.
std::string next_commands(const std::vector<ProcessStatus>& processes) {
  const auto usable = std::ranges::find_if(
      processes, [](const auto& status) { return !status.refusal || status.only_bpf; });
  const auto pid =
      usable == processes.end() ? std::string{"PID"} : std::to_string(usable->pid.value());
  return base::to_columns(
      {{"why it is slow", fmt::format("perf-pyinject why -p {}", pid)},
       {"what it is busy with", fmt::format("perf-pyinject top -p {}", pid)},
       {"where it is now", fmt::format("perf-pyinject dump -p {}", pid)},
       {"a picture", fmt::format("perf-pyinject flamegraph -p {} -d 10 -o flamegraph.html", pid)},
       {"a recording", fmt::format("perf-pyinject record -p {} --engine auto -- sleep 10", pid)},
       {"what can be recorded", "perf-pyinject status"}},
      {});
}

}  // namespace

std::string to_overview(const targets::StatusReport& report, const CpuShares& shares,
                        std::size_t width) {
  if (report.processes.empty()) {
    return "no Python process is visible\n" + targets::unlisted(report) +
           "\nto launch and profile one  perf-pyinject record -- python3 app.py\n";
  }
  auto processes = report.processes;
  std::ranges::stable_sort(processes, std::ranges::greater{}, [&shares](const auto& status) {
    const auto found = shares.find(status.pid);
    return found == shares.end() ? 0 : found->second;
  });
  std::vector<std::vector<std::string>> rows{{"PID", "USER", "%CPU", "PYTHON", "COMMAND"}};
  for (const auto& status : processes) {
    if (rows.size() <= kMostListed) {
      rows.push_back(row_of(status, shares));
    }
  }
  auto text = base::to_columns(rows, {.right_aligned = {0, 2}, .width = width});
  if (processes.size() > kMostListed) {
    text += fmt::format("and {} more: perf-pyinject status\n", processes.size() - kMostListed);
  }
  return text + targets::unlisted(report) + "\n" + next_commands(processes);
}

namespace {

// Takes half a second, in which it measures the use of the CPUs.
int run_overview(const CommandLine& /*line*/, Reporter& /*reporter*/,
                 const Terminal& /*terminal*/) {
  const CpuMeter meter;
  const auto detector = python::make_detector();
  const auto observer =
      bpf::built_in() ? python::make_detector(python::Purpose::kObserve) : nullptr;
  const auto report = targets::report_status(*detector, {}, observer.get());
  base::write_all(STDOUT_FILENO, to_overview(report, meter.shares(), output_width()),
                  "standard output");
  return 0;
}

}  // namespace

const VerbSpec overview_verb{.name = "overview",
                             .summary = {},
                             .options = {},
                             .parse = nullptr,
                             .run = run_overview,
                             .help = {}};

}  // namespace pyinject::cli
