#include "base/file.hpp"
#include "base/format.hpp"
#include "base/host_name.hpp"
#include "base/text.hpp"
#include "cli/command_line.hpp"
#include "cli/console.hpp"
#include "cli/launched_python.hpp"
#include "cli/profile_file.hpp"
#include "cli/reporter.hpp"
#include "cli/terminal.hpp"
#include "cli/verb_options.hpp"
#include "cli/verbs.hpp"
#include "cli/why_choice.hpp"
#include "procfs/stat.hpp"
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
#include <functional>
#include <optional>
#include <string_view>
#include <thread>
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
constexpr std::string_view kTooShort = "the command's Python ended before it could be recorded";

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
       perf-pyinject why [OPTION...] -- COMMAND...

Records a Python process for some seconds and prints where the wall time of its
threads goes: Python, C functions, the garbage collector, imports, the kernel,
page faults, and waits for the GIL, locks, files, the network or a CPU; the
lines with most of it; who has the GIL or a lock while others wait; which
greenlets are suspended; and what is unusual, with the next command to type.
The first line is the verdict.

COMMAND is launched and examined until it ends; its output goes to standard
error. The process is not stopped or changed. Needs root, or CAP_BPF with
CAP_PERFMON; kernel functions have names only for root. Linux 5.17 with BTF.

{options}

Threads whose names differ only in digits are one group. A thread has work when
it does not wait for a request, an event, another thread or the end of a sleep.

exit status: 0; 125 the process cannot be recorded; 126, 127 COMMAND cannot run;
129 usage

examples:
  perf-pyinject why
  perf-pyinject why shop -d 30 -o web.html
  perf-pyinject why -- python3 job.py
  perf-pyinject why 4711 --json | jq -r .cause
)";

void parse_why(const VerbArguments& arguments, CommandLine& line) {
  constexpr int kMostSeconds = 600;
  auto parsed = parse_words(why_verb, arguments, Operands::kTargetsOrCommand, line);
  if (line.help) {
    return;
  }
  if (parsed.has("children") && parsed.pids.empty()) {
    throw CommandLineError{"--children is for -p", kUsage};
  }
  if (parsed.has("json") && parsed.has("markdown")) {
    throw CommandLineError{"--json and --markdown exclude each other", kUsage};
  }
  auto scope = parse_scope(parsed);
  if (parsed.split.separator) {
    if (!parsed.pids.empty() || scope.narrow() || parsed.has("all-cpus")) {
      refuse_command(parsed.split.command, why_verb);
    }
    if (parsed.has("duration")) {
      throw CommandLineError{"-d is for running processes: a launched command is recorded whole",
                             kUsage};
    }
  }
  const auto output = parsed.value("output");
  if (output) {
    ProfileFile::require_suffix(*output);
  }
  line.options = WhyCommand{
      .command = parsed.split.separator ? parsed.split.command : std::vector<std::string>{},
      .pids = parsed.pids,
      .scope = std::move(scope),
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

// How long PROCESS has lived.
nanoseconds age_of(const base::ProcessId& process) {
  const auto ticks = procfs::ticks_since_boot() - process.start_time;
  return std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>{
      static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK))});
}

// A process that is ending has no memory any more, and is not yet a zombie.
bool ends_soon(const base::ProcessId& process) {
  const auto deadline = Deadline::after(std::chrono::milliseconds{100});
  while (!deadline.expired() && !procfs::has_ended(process)) {
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  return procfs::has_ended(process);
}

struct Recorded {
  why::Recording recording;
  std::string title;
  nanoseconds missed{};  // since the start of the process
};

// Records until the end of the time, a signal, or the end of the program. nullopt: it cannot be
// recorded, and LOGGER has been told why.
std::optional<Recorded> record(const python::Target& target, const WhyCommand& command,
                               targets::StopSignals& signals, LaunchedPython* launched,
                               base::Logger& logger) {
  const auto pid = target.id.pid.value();
  auto opened =
      why::Recorder::open(target, nanoseconds{std::chrono::seconds{1}} / command.frequency);
  if (const auto* const why = std::get_if<std::string>(&opened)) {
    if (launched != nullptr && ends_soon(target.id)) {
      logger.error("{}", kTooShort);
    } else {
      logger.error("why: {}", *why);
      logger.info("without that: perf-pyinject dump -p {} prints what each thread does now", pid);
    }
    return std::nullopt;
  }
  auto& recorder = *std::get<std::unique_ptr<why::Recorder>>(opened);
  auto title = title_of_process(target.id.pid);
  logger.info(
      "recording pid {} {}", pid,
      launched != nullptr ? "until it ends" : fmt::format("for {} s", command.duration.count()));
  const auto missed = age_of(target.id);
  recorder.begin();
  const auto end = Deadline::after(command.duration);
  const auto stopped = [&] {
    return launched != nullptr ? launched->stopped() : end.expired() || signals.next().has_value();
  };
  while (!stopped() && recorder.step()) {
  }
  auto recording = recorder.finish();
  recording.launched = launched != nullptr;
  return Recorded{.recording = std::move(recording), .title = std::move(title), .missed = missed};
}

// The process has ended: what else there is to find out takes another run.
void suit_launched(why::Report& report, const WhyCommand& command, nanoseconds missed) {
  std::erase_if(report.unusual, [](const auto& unusual) { return unusual.name == "exited"; });
  for (auto& unusual : report.unusual) {
    unusual.next.clear();
  }
  report.next =
      fmt::format("perf-pyinject {} --", command.output ? "record --off-cpu" : "why -o why.html");
  for (const auto& word : command.command) {
    report.next += " " + shell_word(word);
  }
  report.unusual.push_back(
      {.name = "launched",
       .text = fmt::format("the first {:.2f} s after its start were not recorded",
                           std::chrono::duration<double>{missed}.count()),
       .next = {}});
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
  std::optional<ProfileFile> file;  // fails before the recording, not after it
  if (command.output) {
    file.emplace(*command.output);
  }
  std::optional<LaunchedPython> launched;
  std::optional<ChosenProcess> chosen;
  if (command.command.empty()) {
    chosen = choose_process(command, *detector, logger);
  } else {
    launched.emplace(command.command, signals, logger);
    if (auto target = launched->start(*detector)) {
      chosen = ChosenProcess{.target = std::move(*target), .considered = {}};
    }
  }
  if (!chosen) {
    return launched ? launched->status() : kFailure;
  }
  auto recorded = record(chosen->target, command, signals, launched ? &*launched : nullptr, logger);
  while (recorded && launched && recorded->recording.executed) {
    logger.info("pid {} has executed another program: waiting for a Python",
                recorded->recording.pid);
    const auto next = launched->next(*detector);
    auto again = next ? record(*next, command, signals, &*launched, logger) : std::nullopt;
    if (!again) {
      break;
    }
    recorded = std::move(again);
  }
  if (launched) {
    launched->finish();
  }
  if (!recorded) {
    return kFailure;
  }
  auto& recording = recorded->recording;
  const auto accounts = why::account(recording);
  auto report = why::make_report(recording, accounts);
  report.considered = std::move(chosen->considered);
  if (launched && report.samples == 0 && report.switches == 0) {
    logger.error("{}", kTooShort);
    return kFailure;
  }
  if (launched) {
    suit_launched(report, command, recorded->missed);
  }
  base::write_all(STDOUT_FILENO, shown(report, command), "standard output");
  if (file) {
    const auto lead = report.next.empty()
                          ? report.verdict
                          : fmt::format("{}\nnext: {}", report.verdict, report.next);
    file->write(why::to_profile(recording, accounts),
                {.title = recorded->title, .lead = lead, .sources = command.sources}, logger);
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
