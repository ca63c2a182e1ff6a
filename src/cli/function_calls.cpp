#include "cli/function_calls.hpp"

#include "base/file.hpp"
#include "base/format.hpp"
#include "base/text.hpp"
#include "calls/call_report.hpp"
#include "cli/console.hpp"
#include "cli/verb_options.hpp"
#include "cli/verbs.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/targets/stop_signals.hpp"
#include "record/verbs/function_recording.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <exception>
#include <string_view>
#include <vector>

#include <unistd.h>

namespace pyinject::cli {

namespace {

using record::kFailure;
using record::kUsage;

void print(std::string_view text) { base::write_all(STDOUT_FILENO, text, "standard output"); }

// Warns if the numbers are unreliable.
void tell_defects(const calls::CallTrace& trace, base::Logger& logger) {
  if (trace.lost > 0) {
    logger.warning(
        "{} lost, so the counts of calls are too low: use larger buffers (-m 64M) or record for a "
        "shorter time",
        base::counted(trace.lost, "record was", "records were"));
  }
  if (trace.unreadable > 0) {
    logger.warning("skipped {} that cannot be decoded", base::counted(trace.unreadable, "sample"));
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

// The recording is valid even if this fails.
void summarize(const std::string& path, base::Logger& logger) {
  try {
    const auto trace = calls::read_calls(path);
    const auto times = times_of(trace);
    std::uint64_t calls = 0;
    for (const auto& one : times) {
      calls += one.calls;
    }
    logger.info("recorded {} of {}, {}, {}", base::counted(calls, "call"),
                base::counted(times.size(), "function"),
                trace.lost == 0 ? "none lost" : base::counted(trace.lost, "record") + " lost",
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

void check_functions(const record::RecordPlan& record,
                     const boost::program_options::variables_map& values) {
  if (record.pids().empty()) {
    throw CommandLineError{
        "--functions is for running processes: -p PID (not -a, -u, --comm, -G, nor a command to be "
        "launched)",
        kUsage};
  }
  const auto exclude = [&](const char* other) {
    if (values.count(other) != 0) {
      throw CommandLineError{fmt::format("--functions does not work with --{}", other), kUsage};
    }
  };
  for (const auto* const other :
       {"children", "engine", "no-backfill", "repeat", "deactivate-timeout", "stats", "what"}) {
    exclude(other);
  }
  for (const auto& option : record_verb.options) {
    if (option.flag != nullptr) {  // of weave, which --functions does not use
      exclude(std::string{option.long_name()}.c_str());
    }
  }
  const auto& chosen = *record.perf_options;
  if (chosen.output.pipe) {
    throw CommandLineError{"--functions writes to a file: not with -o -", kUsage};
  }
  // perf applies both to all events, which would drop arbitrary entries and returns.
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

int run_record_functions(const record::RecordPlan& record, base::Logger& logger,
                         record::RecordObserver& observer) {
  if (!calls::can_read_calls()) {
    logger.error(
        "--functions: this perf-pyinject was built without libtraceevent: build it with "
        "libtraceevent-dev installed");
    return kFailure;
  }
  record::FunctionRecording recording;
  {
    targets::StopSignals stop;  // from then on, signals end the summary as they end any program
    recording = record::record_functions(record, logger, observer, stop);
  }
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
