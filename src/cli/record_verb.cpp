#include "base/format.hpp"
#include "base/text.hpp"
#include "cli/added_recipes.hpp"
#include "cli/command_line.hpp"
#include "cli/console.hpp"
#include "cli/default_engine.hpp"
#include "cli/function_calls.hpp"
#include "cli/push_option.hpp"
#include "cli/recipes.hpp"
#include "cli/repeat_option.hpp"
#include "cli/reporter.hpp"
#include "cli/verb_options.hpp"
#include "cli/verbs.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/python/injector.hpp"
#include "pyinject/record/record_session.hpp"
#include "pyinject/targets/stop_signals.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace pyinject::cli {

namespace {

constexpr auto kRecordOptions = std::to_array<Option>({
    under("which processes", rows::kPid),
    rows::kChildren.with("also all Python processes below them, now and later"),
    rows::kAllCpus.with("all processes, in containers and started later as well"),
    rows::kUid,
    rows::kComm,
    rows::kCgroup,
    rows::kDuration.with("how long to record (perf's own -d is --data)"),
    {"--strict", "fail if one target cannot be recorded (default with -p)"},
    {"--lenient", "skip such targets (default with -a, -u, --comm, -G)"},
    under("how", rows::kEngine.with("trampoline; bpf: read stacks in the kernel, change no process "
                                    "(CAP_BPF, CAP_PERFMON, Linux 5.17 with BTF); auto: bpf if "
                                    "possible. Default: $PYINJECT_ENGINE, else what is safe")),
    rows::kOffCpu.with("show where threads wait and for how long, deadlocks included"),
    rows::kWhat.with("events for io, net, locks (timed), memory (kept), faults (touched), alloc, "
                     "malloc (-p), cache, sched; implies bpf"),
    with_next(rows::kGil.with("mark GIL holders")),
    rows::kTasks.with("mark asyncio tasks (3.14+); implies bpf"),
    {"--functions",
     "record every call and return instead of samples (-p; 3.15 --with-dtrace; root): 1 to 3 us "
     "each; see functions --help"},
    {"--no-backfill", "omit functions that were entered before the attach"},
    rows::kDeactivateTimeout.with("limit for switching trampolines off (default: 5)"),
    rows::kPerf,
    not_in_help({"--recorder R",
                 "perf, or own: this tool itself (default: perf if it is installed)",
                 Completed::kWord, "who records", "perf own"}),
    under("output",
          rows::kLines.with("add line numbers to the function names (trampoline: only of those "
                            "entered before the attach)")),
    rows::kPythonOnly,
    {"--repeat TIME/PERIOD",
     "record for TIME every PERIOD (such as 30s/5m), into perf.data.<UTC time>; SIGHUP starts the "
     "next recording"},
    with_next(needing("repeat", {"--keep N", "keep the latest N (12)", Completed::kUnknown,
                                 "keep the latest N files of --repeat"})),
    rows::kKeepRaw.with("keep perf's own as NAME.raw"),
    needing("repeat", {"--max-cpu SHARE", "sample less often if --repeat takes more of a CPU"}),
    repeated({"--push KIND=URL",
              "send it to pyroscope, parca, otlp (alpha), a pprof-dir; man: --label, "
              "--push-credentials, --spool",
              Completed::kUnknown, "send each recording to this server"}),
    needing("push", not_in_help(repeated({"--label K=V", "a label of the profiles of --push"}))),
    needing("push", not_in_help({"--push-credentials FILE",
                                 "the file with the credentials of --push", Completed::kFiles})),
    needing("push",
            not_in_help({"--spool DIR", "the directory for profiles that --push cannot send",
                         Completed::kDirectories})),
    with_next(rows::kStats),
    rows::kLogFormat,
    with_next(rows::kQuiet),
    rows::kVerbose.with("also print perf's messages"),
});

constexpr std::string_view kRecordHelp =
    R"(usage: perf-pyinject record (PID[,PID...] | -a | -u USER | --comm GLOB |
                             -G CGROUP) [OPTION...] [-d SEC | -- COMMAND...]
       perf-pyinject record [OPTION...] -- COMMAND...

Runs perf record and adds the Python functions to its stacks, until COMMAND or
SEC or Ctrl-C ends. Without processes, COMMAND is launched and profiled. Other
options go to perf record; a few that leave no Python functions are refused.

{options}

exit status: COMMAND's, or 0 if the targets exit first; 125 refused or failed;
126, 127 COMMAND cannot run; 129 usage; 128 + N ended by signal N

example:
  perf-pyinject record -p 4711,4712 -F 999 -o web.data -d 30
)";

using record::kUsage;

void parse_record_options(ParsedWords& parsed, record::RecordPlan& record) {
  auto& split = parsed.split;
  record.perf_options = perf::PerfOptions{std::move(split.perf)};
  // As in perf: -C without -p selects all processes that run there.
  const bool processors = parsed.pids.empty() && record.perf_options->processors;
  record.targets = parse_targets(parsed, processors);
  if (record.launches() && parsed.has("children")) {
    throw CommandLineError{"--children is for -p: a command is recorded with its children anyway",
                           kUsage};
  }
  if (const auto seconds = parsed.value("duration")) {
    constexpr int kMostSeconds = 86'400;
    record.duration =
        std::chrono::seconds{parse_whole(*seconds, "-d (perf's own is --data)", kMostSeconds)};
    if (!split.command.empty()) {
      throw CommandLineError{
          record.launches() ? "-d is for running processes: a launched command is recorded whole"
                            : "give either -d or a COMMAND that sets the duration",
          kUsage};
    }
  }
  if (split.separator && split.command.empty()) {
    throw CommandLineError{"no command after '--'", kUsage};
  }
  if (record.launches() && split.command.empty()) {
    throw CommandLineError{
        "no target: use -p PID, -a for all processes, -u, --comm or -G for some of them, or "
        "-- COMMAND to launch one",
        kUsage};
  }
  record.strict = record.whole_system() ? parsed.has("strict") : parsed.strict;
  // The calls of --functions take more of perf than this tool's own recorder has.
  record.perf = parsed.has("functions") ? parsed.perf : search_recorder(parsed);
  record.backfill = !parsed.has("no-backfill");
  record.flags = parsed.flags;
  record.deactivation_deadline = parsed.deactivation_deadline;
  record.command = std::move(split.command);
}

// Without --engine, an option that needs BPF counts more than a default that is set elsewhere.
void parse_engine_options(const ParsedWords& parsed, record::RecordPlan& record) {
  const auto& flags = record.flags;
  const bool needs_bpf = flags.gil || flags.tasks;
  if (const auto name = parsed.value("engine")) {
    const auto engine = parse_engine(*name);
    if (needs_bpf && !engine.knows_gil_and_tasks) {
      throw CommandLineError{fmt::format("--{} needs --engine bpf, not --engine {}",
                                         flags.gil ? "gil" : "tasks", engine.name),
                             kUsage};
    }
    record.engine = engine.choice;
  } else if (needs_bpf || parsed.has("what")) {
    record.engine = record::EngineChoice::kBpf;
  } else if (!parsed.has("functions")) {
    record.engine_is_open = !apply_default_engine(parsed.default_engine, record);
  }
}

std::optional<record::RepeatOptions> parse_repeat_options(const ParsedWords& parsed,
                                                          const record::RecordPlan& record) {
  const auto keep = parsed.value("keep");
  const auto max_cpu = parsed.value("max-cpu");
  const auto repeat = parsed.value("repeat");
  return repeat ? std::optional{parse_repeat(*repeat, keep, max_cpu, record)} : std::nullopt;
}

bool wants_malloc(const std::vector<std::string>& recipes) {
  return std::ranges::find(recipes, kMallocRecipe) != recipes.end();
}

void parse_record(const VerbArguments& arguments, CommandLine& line) {
  auto parsed = parse_words(record_verb, arguments, Operands::kPerfOptionsAndCommand, line);
  if (line.help) {
    return;
  }
  RecordCommand command;
  parse_record_options(parsed, command.record);
  parse_engine_options(parsed, command.record);
  if (const auto list = parsed.value("what")) {
    command.what = parse_recipes(*list);
    if (wants_malloc(command.what) && command.record.pids().empty()) {
      throw CommandLineError{
          "--what malloc is for running processes: -p PID (not -a, -u, --comm, -G, nor a command "
          "to be launched)",
          kUsage};
    }
  }
  command.functions = parsed.has("functions");
  if (command.functions) {
    check_functions(command.record, parsed.values);
  }
  command.repeat = parse_repeat_options(parsed, command.record);
  parse_push_options(parsed, command);
  line.options = std::move(command);
}

int record_by(const CommandLine& line, const record::RecordPlan& record, Reporter& reporter,
              const Terminal& terminal) {
  const auto& command = std::get<RecordCommand>(line.options);
  auto& logger = reporter.logger();
  Console console{logger, is_live(line, terminal), name_of_perf(record.perf), &reporter};
  if (command.functions) {
    return run_record_functions(record, logger, console);
  }
  const auto detector = python::make_detector();
  const auto injector = python::make_injector();
  const auto pusher = command.push ? start_pushing(command, reporter) : nullptr;
  if (!command.repeat) {
    record::RecordResult result;
    {
      targets::StopSignals stop;
      result = record::record(record, *detector, *injector, logger, console, stop);
    }
    if (!pusher) {
      return result.status;
    }
    if (result.status == 0 || result.signal != 0) {
      pusher->add(record.perf_options->output.path);
    }
    finish_pushing(pusher.get(), reporter);
    const auto counts = pusher->counts();
    return counts.dropped + counts.spooled != 0 ? record::kFailure : result.status;
  }
  auto repeat = *command.repeat;
  repeat.done = [&](int status) {
    note_pushed(pusher.get(), reporter);
    (void)reporter.finish(status);
  };
  repeat.complete = [&](const std::string& file) {
    if (pusher) {
      pusher->add(file);
    }
  };
  int status = record::kFailure;
  {
    targets::StopSignals stop;
    status = record::record_repeatedly(record, repeat, *detector, *injector, logger, console, stop);
  }
  finish_pushing(pusher.get(), reporter);
  return status;
}

int run_record(const CommandLine& line, Reporter& reporter, const Terminal& terminal) {
  const auto& command = std::get<RecordCommand>(line.options);
  auto record = command.record;
  auto& logger = reporter.logger();
  auto probed = RecipeProbes::of(command.what, record.pids(), logger);
  if (const auto* const status = std::get_if<int>(&probed)) {
    return *status;
  }
  auto& probes = std::get<RecipeProbes>(probed);
  if (!command.what.empty() && !add_recipes(command.what, probes, record, logger)) {
    return record::kFailure;
  }
  const int status = record_by(line, record, reporter, terminal);
  probes.remove(logger);
  return status;
}

}  // namespace

const VerbSpec record_verb{.name = "record",
                           .summary = "profile processes, or launch a program and profile it",
                           .options = kRecordOptions,
                           .parse = parse_record,
                           .run = run_record,
                           .help = kRecordHelp,
                           .operands = Completed::kCommand};

}  // namespace pyinject::cli
