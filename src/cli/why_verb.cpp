#include "base/file.hpp"
#include "base/format.hpp"
#include "base/host_name.hpp"
#include "base/text.hpp"
#include "cli/command_line.hpp"
#include "cli/profile_file.hpp"
#include "cli/reporter.hpp"
#include "cli/terminal.hpp"
#include "cli/verb_options.hpp"
#include "cli/verbs.hpp"
#include "cli/why_choice.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/targets/stop_signals.hpp"
#include "why/profile.hpp"
#include "why/recorder.hpp"
#include "why/report.hpp"
#include "why/report_text.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <ctime>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include <unistd.h>

namespace pyinject::cli {

namespace {

using base::Deadline;
using record::kFailure;
using record::kUsage;
using std::chrono::nanoseconds;

constexpr int kDefaultOfWhy = 499;  // samples per second and CPU
constexpr int kMostOfWhy = 5'000;

constexpr auto kWhyOptions = std::to_array<Option>({
    under("which process: the busiest of", rows::kPid),
    rows::kChildren.with("also their Python children: the workers of a server"),
    rows::kAllCpus.with("all Python processes (default)"),
    rows::kUid,
    rows::kComm,
    rows::kCgroup,
    under("how", rows::kDuration.with("how long to record (default: 5)")),
    rows::kFreq.with("samples per second and CPU (default: 499)"),
    rows::kWritten,
    rows::kNoSource,
    {"--json", "for programs: docs/why-json.md describes the fields"},
    {"--markdown", "for a ticket or a chat"},
});

constexpr std::string_view kWhyHelp =
    R"(usage: perf-pyinject why [PID[,PID...] | NAME | -a | -u USER | --comm GLOB |
                          -G CGROUP] [OPTION...]

Records a Python process for some seconds and prints where the wall time of its
threads goes: Python, C functions, the garbage collector, imports, the kernel,
page faults, and waits for the GIL, locks, files, the network or a CPU; the
lines with most of it; who has the GIL or a lock while others wait; which
greenlets are suspended; and what is unusual, with the next command to type.
The first line is the verdict.

The process is not stopped or changed. Needs root, or CAP_BPF with CAP_PERFMON;
kernel functions have names only for root. Linux 5.17 with BTF.

{options}

Threads whose names differ only in digits are one group. A thread has work when
it does not wait for a request, an event, another thread or the end of a sleep.

exit status: 0; 125 the process cannot be recorded; 129 usage

examples:
  perf-pyinject why
  perf-pyinject why shop -d 30 -o web.html
  perf-pyinject why 4711 --json | jq -r .cause
)";

void parse_why(const VerbArguments& arguments, CommandLine& line) {
  constexpr int kMostSeconds = 600;
  auto parsed = parse_words(why_verb, arguments, Operands::kNone, line);
  if (line.help) {
    return;
  }
  if (parsed.has("children") && parsed.pids.empty()) {
    throw CommandLineError{"--children is for -p", kUsage};
  }
  if (parsed.has("json") && parsed.has("markdown")) {
    throw CommandLineError{"--json and --markdown exclude each other", kUsage};
  }
  const auto output = parsed.value("output");
  if (output) {
    ProfileFile::require_suffix(*output);
  }
  line.options = WhyCommand{
      .pids = parsed.pids,
      .scope = parse_scope(parsed),
      .children = parsed.has("children"),
      .duration = std::chrono::seconds{parse_whole(parsed.value("duration").value_or("5"), "-d",
                                                   kMostSeconds)},
      .frequency = parse_whole(parsed.value("freq").value_or(std::to_string(kDefaultOfWhy)), "-F",
                               kMostOfWhy),
      .json = parsed.has("json"),
      .markdown = parsed.has("markdown"),
      .output = output,
      .sources = !parsed.has("no-source")};
}

// Records until the end of the time, a signal, or the exit of the process.
void record(why::Recorder& recorder, const WhyCommand& command, targets::StopSignals& signals) {
  recorder.begin();
  const auto end = Deadline::after(command.duration);
  while (!end.expired() && !signals.next() && recorder.step()) {
  }
}

std::string shown(const why::Report& report, const WhyCommand& command) {
  if (command.json) {
    return why::to_json(report);
  }
  if (command.markdown) {
    return why::to_markdown(report, fmt::format("{}, {:%Y-%m-%d %H:%M:%S} UTC", base::host_name(),
                                                fmt::gmtime(std::time(nullptr))));
  }
  const auto output = look_at_output();
  return why::to_text(report, {.bold = output.color, .rows = output_height()});
}

int run_why(const CommandLine& line, Reporter& reporter, const Terminal& /*terminal*/) {
  const auto& command = std::get<WhyCommand>(line.options);
  auto& logger = reporter.logger();
  targets::StopSignals signals;
  const auto detector = python::make_detector(python::Purpose::kObserve);
  auto chosen = choose_process(command, *detector, logger);
  if (!chosen) {
    return kFailure;
  }
  const auto pid = chosen->target.id.pid.value();
  auto opened =
      why::Recorder::open(chosen->target, nanoseconds{std::chrono::seconds{1}} / command.frequency);
  if (const auto* const why = std::get_if<std::string>(&opened)) {
    logger.error("why: {}", *why);
    logger.info("without that: perf-pyinject dump -p {} prints what each thread does now", pid);
    return kFailure;
  }
  auto& recorder = *std::get<std::unique_ptr<why::Recorder>>(opened);
  std::optional<ProfileFile> file;  // fails before the recording, not after it
  if (command.output) {
    file.emplace(*command.output);
  }
  const auto title = title_of_process(chosen->target.id.pid);
  logger.info("recording pid {} for {} s", pid, command.duration.count());
  record(recorder, command, signals);
  auto recording = recorder.finish();
  const auto accounts = why::account(recording);
  auto report = why::make_report(recording, accounts);
  report.considered = std::move(chosen->considered);
  base::write_all(STDOUT_FILENO, shown(report, command), "standard output");
  if (file) {
    const auto lead = report.next.empty()
                          ? report.verdict
                          : fmt::format("{}\nnext: {}", report.verdict, report.next);
    file->write(why::to_profile(recording, accounts),
                {.title = title, .lead = lead, .sources = command.sources}, logger);
  }
  return 0;
}

}  // namespace

const VerbSpec why_verb{.name = "why",
                        .summary = "print where the time of a process goes, and what to do next",
                        .options = kWhyOptions,
                        .parse = parse_why,
                        .run = run_why,
                        .help = kWhyHelp,
                        .operands = Completed::kPids};

}  // namespace pyinject::cli
