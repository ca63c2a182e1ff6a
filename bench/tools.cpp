// Measures the resources of the tool itself and what many sessions leave in a target.
#include "base/file.hpp"
#include "procfs/maps.hpp"
#include "pyinject/base/error.hpp"
#include "sections.hpp"
#include "support/attach.hpp"
#include "support/paths.hpp"
#include "support/temp_dir.hpp"
#include "targets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace pyinject::bench {

namespace {

using std::chrono::seconds;

// The resources of a recording that lasts until its command, `cat`, ends.
struct Usage {
  double cpu_until_on = 0;  // ms
  double share = 0;         // of one processor while it records, percent
  double resident_mb = 0;
};

Usage usage_of_record(base::Pid pid, std::chrono::milliseconds span) {
  const test::TempDir folder;
  test::ChildProcess record{{test::tool(), "record", "-p", std::to_string(pid.value()), "-F", "999",
                             "-e", "cpu-clock", "-o", folder / "perf.data", "--", "cat"}};
  const auto begun = base::Deadline::after(seconds{20});
  while (record.err().find("trampoline on") == std::string::npos && !begun.expired()) {
    (void)record.wait(base::Deadline::after(std::chrono::milliseconds{5}));
  }
  const auto before = usage_of(record.pid().value());
  const auto took = duration_of([&] { wait_for(span); });
  const auto after = usage_of(record.pid().value());
  record.close_stdin();
  if (record.wait(base::Deadline::after(seconds{20})) != test::ExitStatus{}) {
    throw base::Error{"record: " + record.err()};
  }
  return {.cpu_until_on = before.cpu_ms,
          .share = (after.cpu_ms - before.cpu_ms) * 1e6 / static_cast<double>(took.count()) * 100,
          .resident_mb = after.resident_mb};
}

void tools_of(Table& table, const Effort& effort, const test::Interpreter& python) {
  Series active;
  for (std::size_t run = 0; run < effort.slow_runs; ++run) {
    Watched target{python, Kind::kBusy, 1};
    const std::vector<std::string> command{test::tool(), "activate", "-p",
                                           std::to_string(target.pid().value())};
    active.add(duration_of([&] {
      const auto result = test::run(command);
      if (result.status != test::ExitStatus{}) {
        throw base::Error{"activate: " + result.err};
      }
    }));
    target.check();
  }
  Watched target{python, Kind::kBusy, 1};
  const auto usage = usage_of_record(target.pid(), effort.window * 10);
  target.check();
  table.row({version(python), std::to_string(active.count()),
             fmt::format("{:.1f} / {:.1f}", active.median() / 1000, active.percentile(100) / 1000),
             fmt::format("{:.1f}", usage.cpu_until_on), fmt::format("{:.2f} %", usage.share),
             fmt::format("{:.1f}", usage.resident_mb)});
}

// The sizes that must not grow.
struct Size {
  std::size_t mappings = 0;
  std::size_t map_lines = 0;
  std::size_t descriptors = 0;
  std::uint64_t resident_kb = 0;
};

Size size_of(const test::Interpreter& python, base::Pid pid) {
  const auto root = fmt::format("/proc/{}", pid.value());
  const auto map = base::read_file(fmt::format("{}/tmp/perf-{}.map", python.root, pid.value()));
  const auto status = base::read_file(root + "/status").value_or("");
  Size size;
  size.mappings = procfs::read_maps(pid).value_or(std::vector<procfs::Mapping>{}).size();
  size.map_lines = static_cast<std::size_t>(std::ranges::count(map.value_or(""), '\n'));
  size.descriptors = static_cast<std::size_t>(std::ranges::distance(
      std::filesystem::directory_iterator{root + "/fd"}, std::filesystem::directory_iterator{}));
  const auto at = status.find("VmRSS:");
  size.resident_kb = at == std::string::npos ? 0 : std::stoull(status.substr(at + 6));
  return size;
}

std::string change(std::uint64_t from, std::uint64_t to) {
  return fmt::format("{} -> {}", from, to);
}

void growth_of(Table& table, const Effort& effort, const test::Interpreter& python) {
  test::Attach attach;
  Watched target{python, Kind::kBusy, 1};
  for (int run = 0; run < 10; ++run) {  // afterwards every called function has its trampoline
    attach.activate(target.pid());
    target.check();
    attach.deactivate(target.pid());
    target.check();
  }
  const auto before = size_of(python, target.pid());
  Series stopped;
  const auto took = duration_of([&] {
    for (std::size_t run = 0; run < effort.toggles; ++run) {
      stopped.add(attach.activate(target.pid()).stopped);
      stopped.add(attach.deactivate(target.pid()).stopped);
    }
  });
  target.check();
  const auto after = size_of(python, target.pid());
  table.row({version(python), std::to_string(effort.toggles),
             fmt::format("{:.0f} s", static_cast<double>(took.count()) / 1e9), stopped.text(),
             change(before.mappings, after.mappings), change(before.map_lines, after.map_lines),
             change(before.descriptors, after.descriptors),
             change(before.resident_kb, after.resident_kb)});
  if (after.mappings != before.mappings || after.map_lines != before.map_lines ||
      after.descriptors != before.descriptors) {
    throw base::Error{python.name + " has grown"};
  }
}

}  // namespace

void tools(const Effort& effort) {
  Table table{
      "What the tool costs",
      "Activate: milliseconds from the start of `perf-pyinject activate -p PID` to its end, "
      "when it is active, median / greatest. CPU and memory of `perf-pyinject record` "
      "(without perf's own): milliseconds of CPU until it records, then its share of one "
      "processor, and MB resident at most.",
      {"CPython", "n", "activate", "CPU at the start", "while it records", "resident"}};
  for (const auto& python : interpreters(effort)) {
    tools_of(table, effort, python);
  }
}

void growth(const Effort& effort) {
  Table table{"What many sessions leave",
              "One process, repeatedly switched on and off. Stop: microseconds, median / 99 % / "
              "greatest.",
              {"CPython", "sessions", "in", "stop", "mappings", "map lines", "descriptors",
               "resident, kB"}};
  for (const auto& python : interpreters(effort)) {
    growth_of(table, effort, python);
  }
}

}  // namespace pyinject::bench
