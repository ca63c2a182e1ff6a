#include "cli/function_calls.hpp"

#include "base/format.hpp"
#include "cli/console.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/file.hpp"
#include "pyinject/base/text.hpp"
#include "pyinject/calls/call_report.hpp"
#include "pyinject/perf/output_file.hpp"
#include "pyinject/session/function_recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include <unistd.h>

namespace pyinject::cli {

namespace {

using session::kFailure;
using session::kUsage;

void print(std::string_view text) { base::write_all(STDOUT_FILENO, text, "standard output"); }

// How far the numbers can be trusted.
void tell_defects(const calls::CallTrace& trace, base::Logger& logger) {
  if (trace.lost > 0) {
    logger.warning(
        "{} calls and returns were lost, the numbers of calls are too low: larger buffers (-m 64M) "
        "or a shorter recording help",
        trace.lost);
  }
  if (trace.unreadable > 0) {
    logger.warning("{} samples cannot be understood and are left out", trace.unreadable);
  }
  if (!trace.damage.empty()) {
    logger.warning("the file ends before its time: {}", trace.damage);
  }
}

void summarize(const std::string& path, base::Logger& logger) {
  try {
    const auto trace = calls::read_calls(path);
    const auto entries =
        std::ranges::count(trace.events, calls::CallEvent::Kind::kEntry, &calls::CallEvent::kind);
    logger.info("recorded {} calls of {} functions, {}, {}", entries, trace.functions.size(),
                trace.lost == 0 ? "none lost" : fmt::format("{} records lost", trace.lost),
                base::printable(path));
    tell_defects(trace, logger);
    logger.info("next: perf-pyinject functions -i {}", shell_word(path));
  } catch (const base::Error& error) {
    logger.warning("{}", error.what());
  }
}

}  // namespace

void check_functions(const CommandLine& line, const boost::program_options::variables_map& values) {
  if (line.record.pids.empty()) {
    throw CommandLineError{
        "--functions is for running processes: -p PID (not -a, -u, --comm, -G, nor a command to be "
        "launched)",
        kUsage};
  }
  static constexpr std::array kOthers{
      "children",    "engine", "gil",      "tasks",  "off-cpu",
      "no-backfill", "lines",  "keep-raw", "repeat", "deactivate-timeout",
      "stats"};
  for (const auto* const other : kOthers) {
    if (values.count(other) != 0) {
      throw CommandLineError{fmt::format("--functions and --{} exclude each other", other), kUsage};
    }
  }
  if (perf::output_of(line.record.perf_options, false).pipe) {
    throw CommandLineError{"--functions writes to a file: not with -o -", kUsage};
  }
}

int run_record_functions(const CommandLine& line, base::Logger& logger,
                         session::RecordObserver& observer) {
  if (!calls::can_read_calls()) {
    logger.error(
        "--functions: this perf-pyinject was built without libtraceevent: build it with "
        "libtraceevent-dev installed");
    return kFailure;
  }
  const auto recording = session::record_functions(line.record, logger, observer);
  for (const auto& file : recording.files) {
    summarize(file, logger);
  }
  return recording.status;
}

int run_functions(const CommandLine& line, base::Logger& logger) {
  const auto trace = calls::read_calls(line.input);
  tell_defects(trace, logger);
  if (line.timeline) {
    calls::write_timeline(trace, line.json, print);
    return 0;
  }
  calls::CallTimes times{trace};
  for (const auto& event : trace.events) {
    (void)times.add(event);
  }
  const auto result = times.result();
  print(line.json ? calls::to_json(trace, result) : calls::to_table(trace, result));
  return 0;
}

}  // namespace pyinject::cli
