#include "cli/function_calls.hpp"

#include "base/file.hpp"
#include "base/format.hpp"
#include "base/text.hpp"
#include "calls/call_report.hpp"
#include "cli/console.hpp"
#include "cli/verb_options.hpp"
#include "perf/record_options.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/perf/output_file.hpp"
#include "record/verbs/function_recording.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <exception>
#include <string_view>
#include <vector>

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
        "{} records were lost, so the counts of calls are too low: larger buffers (-m 64M) or a "
        "shorter recording help",
        trace.lost);
  }
  if (trace.unreadable > 0) {
    logger.warning("{} samples cannot be decoded and are skipped", trace.unreadable);
  }
  if (!trace.damage.empty()) {
    logger.warning("the file is cut short: {}", trace.damage);
  }
}

std::vector<calls::FunctionTimes> times_of(const calls::CallTrace& trace) {
  calls::CallTimes times{trace};
  for (const auto& event : trace.events) {
    (void)times.add(event);
  }
  return times.result();
}

// The recording is good whatever comes of this.
void summarize(const std::string& path, base::Logger& logger) {
  try {
    const auto trace = calls::read_calls(path);
    const auto times = times_of(trace);
    std::uint64_t calls = 0;
    for (const auto& one : times) {
      calls += one.calls;
    }
    logger.info("recorded {} calls of {} functions, {}, {}", calls, times.size(),
                trace.lost == 0 ? "none lost" : fmt::format("{} records lost", trace.lost),
                base::printable(path));
    tell_defects(trace, logger);
    logger.info("next: perf-pyinject functions -i {}", shell_word(path));
  } catch (const base::Error& error) {
    logger.warning("{}", error.what());
  } catch (const std::exception& error) {
    logger.warning("{} is complete, but cannot be read for a summary: {}", base::printable(path),
                   error.what());
  }
}

}  // namespace

void check_functions(const session::RecordOptions& record,
                     const boost::program_options::variables_map& values) {
  if (record.pids.empty()) {
    throw CommandLineError{
        "--functions is for running processes: -p PID (not -a, -u, --comm, -G, nor a command to be "
        "launched)",
        kUsage};
  }
  const auto exclude = [&](const char* other) {
    if (values.count(other) != 0) {
      throw CommandLineError{fmt::format("--functions and --{} exclude each other", other), kUsage};
    }
  };
  for (const auto* const other :
       {"children", "engine", "no-backfill", "repeat", "deactivate-timeout", "stats"}) {
    exclude(other);
  }
  for (const auto& flag : flag_options()) {  // they are of weave, which --functions does not use
    exclude(flag.name);
  }
  const auto& options = record.perf_options;
  if (perf::output_of(options, false).pipe) {
    throw CommandLineError{"--functions writes to a file: not with -o -", kUsage};
  }
  const auto chosen = perf::parse_options(options);
  // perf takes both for all events, and would leave out entries and returns as it comes.
  if (chosen.rate) {
    throw CommandLineError{
        "--functions records every call: not with -F or -c (set the rate of other "
        "events with -e EVENT/freq=N/ or EVENT/period=N/)",
        kUsage};
  }
  if (chosen.overwrite) {
    throw CommandLineError{"--functions records every call: not with --overwrite", kUsage};
  }
}

int run_record_functions(const session::RecordOptions& record, base::Logger& logger,
                         session::RecordObserver& observer) {
  if (!calls::can_read_calls()) {
    logger.error(
        "--functions: this perf-pyinject was built without libtraceevent: build it with "
        "libtraceevent-dev installed");
    return kFailure;
  }
  const auto recording = session::record_functions(record, logger, observer);
  for (const auto& file : recording.files) {
    summarize(file, logger);
  }
  return recording.status;
}

int print_functions(const FunctionsCommand& command, base::Logger& logger) {
  const auto trace = calls::read_calls(command.input);
  tell_defects(trace, logger);
  if (command.timeline) {
    calls::write_timeline(trace, command.json, print);
    return 0;
  }
  const auto result = times_of(trace);
  print(command.json ? calls::to_json(trace, result) : calls::to_table(trace, result));
  return 0;
}

}  // namespace pyinject::cli
