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

constexpr auto kRecordOptions = std::to_array<perf::RecordOption>({
    {"help", 'h', kFlag},
    {"quiet", 'q', kFlag},
    {"verbose", 'v', kFlag},
    {"pid", 'p', kValue},
    {"all-cpus", 'a', kFlag},
    {"uid", 'u', kValue},
    {"comm", 0, kValue},
    {"cgroup", 'G', kValue},
    {"children", 0, kFlag},
    {"perf", 0, kValue},
    {"strict", 0, kFlag},
    {"lenient", 0, kFlag},
    {"no-backfill", 0, kFlag},
    {"lines", 0, kFlag},
    {"keep-raw", 0, kFlag},
    {"repeat", 0, kValue},
    {"keep", 0, kValue},
    {"max-cpu", 0, kValue},
    {"deactivate-timeout", 0, kValue},
    {"stats", 0, kValue},
    {"log-format", 0, kValue},
    {"engine", 0, kValue},
    {"gil", 0, kFlag},
    {"tasks", 0, kFlag},
    {"off-cpu", 0, kFlag},
    {"functions", 0, kFlag},
    {"what", 0, kValue},
    {"python-only", 0, kFlag},
    {"push", 0, kValue},
    {"label", 0, kValue},
    {"spool", 0, kValue},
    {"push-credentials", 0, kValue},
});

constexpr std::string_view kRecordHelp =
    R"(usage: perf-pyinject record (-p PID[,PID...] | -a | -u USER | --comm GLOB |
                             -G CGROUP) [OPTION...] [-- COMMAND...]
       perf-pyinject record [OPTION...] -- COMMAND...

Runs perf record and adds the Python functions to its stacks. With -p, -a, -u,
--comm or -G, COMMAND only sets the duration; without COMMAND, Ctrl-C ends the
recording. Otherwise, COMMAND is launched and profiled. Other options go to perf
record; a few that leave no Python functions are refused, as -t, -D, --control.

which processes:
  -p, --pid LIST   these processes
      --children   also all Python processes below them, now and later
  -a, --all-cpus   all processes, in containers and started later as well
  -u, --uid USER   only processes of USER (name or number)
      --comm GLOB  only processes with this name: --comm 'gunicorn*'
  -G, --cgroup CG  only processes in this cgroup or below it
      --strict     fail if one target cannot be recorded (default with -p)
      --lenient    skip such targets (default with -a, -u, --comm, -G)
how:
      --engine E   trampoline; bpf: read stacks in the kernel, change no process
                   (needs CAP_BPF, CAP_PERFMON, Linux 5.17 with BTF); auto: bpf
                   where possible. Default: $PYINJECT_ENGINE, else trampoline
      --off-cpu    show where threads wait and for how long, deadlocks included
      --what LIST  events for io, net, locks (timed), memory (kept), faults
                   (touched), alloc, malloc (-p), cache, sched; implies bpf
      --gil, --tasks  mark GIL holders, asyncio tasks (3.14+); implies bpf
      --functions  record every call and return instead of samples (-p; 3.15
                   --with-dtrace; root): 1 to 3 us each; see functions --help
      --no-backfill  omit functions that were entered before the attach
      --deactivate-timeout SEC  limit for switching trampolines off (default: 5)
      --perf PATH  the perf to run (else $PERF, else the one on PATH)
output:
      --lines      add line numbers to the function names (trampoline: only of
                   those entered before the attach)
      --python-only  keep only Python functions: perf's Self column shows them
      --repeat TIME/PERIOD  such as 30s/5m: record for TIME every PERIOD, into
                   perf.data.<UTC time>; SIGHUP starts the next recording
      --keep N, --keep-raw  keep the latest N files (12); perf's own as NAME.raw
      --max-cpu 1%  sample less often if --repeat takes more than this of a CPU
      --push KIND=URL  send each to pyroscope, parca, otlp (alpha), a pprof-dir;
                   man: --label, --push-credentials, --spool
      --stats FILE, --log-format json  counters to FILE; messages as JSON
  -q, -v           only warnings and errors; also print perf's messages

exit status: COMMAND's, or 0 if the targets exit first; 125 refused or failed;
126, 127 COMMAND cannot run; 129 usage; 128 + N ended by signal N

example:
  perf-pyinject record -p 4711,4712 -F 999 -o web.data -- sleep 30
)";

using record::kUsage;

void take_record(ParsedWords& parsed, record::RecordOptions& record) {
  auto& split = parsed.split;
  record.scope = parse_scope(parsed);
  // As in perf: -C without -p selects all processes that run there.
  const bool processors = parsed.pids.empty() && perf::parse_options(split.perf).processors;
  record.all = parsed.has("all-cpus") || processors || record.scope.narrow();
  if (record.all && !parsed.pids.empty()) {
    throw CommandLineError{"-p cannot be combined with -a, -u, --comm or -G", kUsage};
  }
  record.children = parsed.has("children");
  if (record.children && parsed.pids.empty()) {
    throw CommandLineError{
        "--children is for -p: -a, -u, --comm and -G include child processes anyway", kUsage};
  }
  if (split.separator && split.command.empty()) {
    throw CommandLineError{"no command after '--'", kUsage};
  }
  record.launch = !record.all && parsed.pids.empty();
  if (record.launch && split.command.empty()) {
    throw CommandLineError{
        "no target: use -p PID, -a for all processes, -u, --comm or -G for some of them, or "
        "-- COMMAND to launch one",
        kUsage};
  }
  record.pids = parsed.pids;
  record.strict = record.all ? parsed.has("strict") : parsed.strict;
  record.perf = parsed.perf;
  record.backfill = !parsed.has("no-backfill");
  record.flags = parsed.flags;
  record.deactivation_deadline = parsed.deactivation_deadline;
  record.perf_options = std::move(split.perf);
  record.command = std::move(split.command);
}

// Without --engine, an option that needs BPF counts more than a default that is set elsewhere.
void take_engine(const ParsedWords& parsed, record::RecordOptions& record) {
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
    record.suggests_engine = !apply_default_engine(parsed.default_engine, record);
  }
}

std::optional<record::RepeatOptions> take_repeat(const ParsedWords& parsed,
                                                 const record::RecordOptions& record) {
  const auto keep = parsed.value("keep");
  const auto max_cpu = parsed.value("max-cpu");
  if (const auto repeat = parsed.value("repeat")) {
    return parse_repeat(*repeat, keep, max_cpu, record);
  }
  if (keep) {
    throw CommandLineError{"--keep needs --repeat", kUsage};
  }
  if (max_cpu) {
    throw CommandLineError{"--max-cpu needs --repeat TIME/PERIOD, as in 30s/5m", kUsage};
  }
  return std::nullopt;
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
  take_record(parsed, command.record);
  take_engine(parsed, command.record);
  if (const auto list = parsed.value("what")) {
    command.what = parse_recipes(*list);
    if (wants_malloc(command.what) && command.record.pids.empty()) {
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
  command.repeat = take_repeat(parsed, command.record);
  take_push(parsed, command);
  line.options = std::move(command);
}

int record_by(const CommandLine& line, const record::RecordOptions& record, Reporter& reporter,
              const Terminal& terminal) {
  const auto& command = std::get<RecordCommand>(line.options);
  auto& logger = reporter.logger();
  Console console{logger, is_live(line, terminal), name_of_perf(record.perf), &reporter};
  if (command.functions) {
    return run_record_functions(record, logger, console);
  }
  const auto detector = python::make_detector();
  const auto injector = python::make_injector();
  if (!command.repeat) {
    return record::record(record, *detector, *injector, logger, console);
  }
  auto repeat = *command.repeat;
  const auto pusher = command.push ? start_pushing(command, reporter) : nullptr;
  repeat.done = [&](int status) {
    note_pushed(pusher.get(), reporter);
    (void)reporter.finish(status);
  };
  repeat.complete = [&](const std::string& file) {
    if (pusher) {
      pusher->add(file);
    }
  };
  const int status =
      record::record_repeatedly(record, repeat, *detector, *injector, logger, console);
  finish_pushing(pusher.get(), reporter);
  return status;
}

int run_record(const CommandLine& line, Reporter& reporter, const Terminal& terminal) {
  const auto& command = std::get<RecordCommand>(line.options);
  auto record = command.record;
  auto& logger = reporter.logger();
  auto probed = RecipeProbes::of(command.what, record.pids, logger);
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
                           .help = kRecordHelp};

}  // namespace pyinject::cli
