#include "base/file.hpp"
#include "base/format.hpp"
#include "base/text.hpp"
#include "cli/command_line.hpp"
#include "cli/core_dump.hpp"
#include "cli/dumped_text.hpp"
#include "cli/repeat_option.hpp"
#include "cli/reporter.hpp"
#include "cli/terminal.hpp"
#include "cli/verb_options.hpp"
#include "cli/verbs.hpp"
#include "inspect/stopped/blocked_threads.hpp"
#include "inspect/stopped/interleave.hpp"
#include "inspect/stopped/native_stacks.hpp"
#include "inspect/stopped/traced_stop.hpp"
#include "inspect/task_history.hpp"
#include "procfs/own_rights.hpp"
#include "procfs/status.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/inspect/dump_json.hpp"
#include "pyinject/inspect/snapshot.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/python/injector.hpp"
#include "pyinject/targets/guard.hpp"
#include "pyinject/targets/stop_signals.hpp"
#include "pyinject/targets/target_selection.hpp"
#include "targets/examine_all.hpp"

#include <fmt/format.h>

#include <array>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include <poll.h>
#include <unistd.h>

namespace pyinject::cli {

namespace {

using python::Reason;
using record::kFailure;
using record::kUsage;

constexpr auto kDumpOptions = std::to_array<Option>({
    under("which processes", rows::kPid),
    rows::kAllCpus.with("all Python processes"),
    rows::kUid,
    rows::kComm,
    rows::kCgroup,
    {"--core FILE", "the process in this core file, as it was then", Completed::kFiles},
    {"--tid TID[,TID...]", "only these threads; without PID, of the process that has them"},
    under("how to read them", {"--stop",
                               "stop all threads for some milliseconds: all output is of one "
                               "moment, and no stack is uncertain. Prints the time"}),
    {"--native",
     "also print the C functions between the Python functions; this stops a process of which a "
     "thread runs, as --stop does"},
    under("output", {"--locals",
                     "below each function its arguments and variables: shows data of the "
                     "process, such as passwords"}),
    rows::kNoSource.with("without the line of its source below each function"),
    {"--json", "for programs: docs/dump-json.md describes the fields"},
    {"--watch TIME",
     "repeat every TIME (such as 1s, 500ms) until Ctrl-C, or until the processes of -p have "
     "exited; --json: one line each time"},
    rows::kLogFormat,
    rows::kQuiet,
    rows::kVerbose.with(
        "print each thread and task by itself, whole paths, each kernel function that "
        "a thread is blocked in, and the interpreter's file"),
});

constexpr std::string_view kDumpHelp =
    R"(usage: perf-pyinject dump (PID[,PID...] | NAME | -a | -u USER | --comm GLOB |
                           -G CGROUP | --tid TID | --core FILE) [OPTION...]

Prints what each thread of a Python process does now: its state, the system call
that it is in with the file or socket that it waits for, the GIL, the lock that
it waits for with its owner, and its Python stack; threads that wait for each
other (DEADLOCK); asyncio's tasks; and suspended greenlets. No process is
changed, and without --stop and --native none is stopped.

{options}

The stack of a thread that runs is read until two reads agree. If its inner
functions change too fast, a line says so above the outer ones. System calls
need the rights of the process's user, or root; all kernel functions need root.

exit status: 0 each process of -p, or the core, was dumped; 125 one was not;
129 usage

examples:
  perf-pyinject dump 4711
  perf-pyinject dump --stop 4711
  perf-pyinject dump --locals --tid 4713
  perf-pyinject dump --comm 'gunicorn*' --watch 2s
  perf-pyinject dump --json 4711 | jq '.processes[0].threads[].state'
)";

void parse_dump(const VerbArguments& arguments, CommandLine& line) {
  auto parsed = parse_words(dump_verb, arguments, Operands::kTargets, line);
  if (line.help) {
    return;
  }
  DumpCommand command{.pids = parsed.pids,
                      .scope = parse_scope(parsed),
                      .json = parsed.has("json"),
                      .stop = parsed.has("stop"),
                      .native = parsed.has("native"),
                      .locals = parsed.has("locals"),
                      .sources = !parsed.has("no-source"),
                      .tids = {},
                      .period = {},
                      .core = parsed.value("core")};
  if (const auto tids = parsed.value("tid")) {
    for (const auto tid : parse_pids(*tids, "--tid")) {
      command.tids.emplace(tid.value());
    }
  }
  const bool all = parsed.has("all-cpus") || command.scope.narrow();
  if (command.core) {
    for (const auto* const option : {"stop", "native", "watch"}) {
      if (parsed.has(option)) {
        throw CommandLineError{fmt::format("--core cannot be combined with --{}", option), kUsage};
      }
    }
    if (all || !command.pids.empty()) {
      throw CommandLineError{"--core cannot be combined with -p, -a, -u, --comm or -G", kUsage};
    }
    line.options = std::move(command);
    return;
  }
  if (!all && command.pids.empty() && command.tids.empty()) {
    throw CommandLineError{
        "dump needs a target: a PID, a NAME, or -a for all Python processes; perf-pyinject status "
        "lists them",
        kUsage};
  }
  if (const auto watch = parsed.value("watch")) {
    command.period = parse_span(*watch);
    if (!command.period) {
      throw CommandLineError{
          fmt::format("--watch {}: expected a time such as 1s or 500ms", base::printable(*watch)),
          kUsage};
    }
  }
  line.options = std::move(command);
}

// Whether its threads are worth showing without Python stacks.
bool has_threads_to_show(Reason reason) {
  return reason == Reason::kMainThreadGone || reason == Reason::kNotInitialized ||
         reason == Reason::kFinalizing;
}

std::vector<base::Pid> named_processes(const DumpCommand& command) {
  auto pids = command.pids;
  if (pids.empty()) {
    for (const auto tid : command.tids) {
      if (const auto status = procfs::read_status(base::Pid{tid.value()})) {
        pids.push_back(status->process);
      }
    }
  }
  return targets::without_repetitions(pids);
}

class Dumper {
 public:
  Dumper(const CommandLine& line, base::Logger& logger)
      : command_{std::get<DumpCommand>(line.options)},
        verbose_{line.verbosity == Verbosity::kVerbose},
        logger_{logger},
        is_named_{!command_.pids.empty() || (!command_.tids.empty() && !command_.scope.narrow())},
        named_{named_processes(command_)} {}

  // Returns the exit status.
  int run();

 private:
  int dump();
  int watch();
  [[nodiscard]] std::vector<base::Pid> candidates() const;
  void choose_threads(inspect::ProcessSnapshot& snapshot);
  // False: it has no threads to show.
  bool try_to_dump(base::Pid pid, const python::Detection& detection);
  bool dump_process(base::Pid pid, const python::Detection& detection);
  [[nodiscard]] std::variant<inspect::ProcessSnapshot, python::Refusal> take_snapshot(
      base::Pid pid, const python::Target* target);
  [[nodiscard]] std::variant<inspect::ProcessSnapshot, python::Refusal> take_snapshot_stopped(
      base::Pid pid, const python::Target* target);
  void report(base::Pid pid, const python::Refusal& refusal);
  void take_round();
  void write(bool clear) const;
  void forget_exited();

  const DumpCommand& command_;
  bool verbose_;
  base::Logger& logger_;
  Output output_ = look_at_output();
  std::unique_ptr<python::Detector> detector_ = python::make_detector(python::Purpose::kObserve);
  std::unique_ptr<python::Injector> injector_ = python::make_injector();
  std::optional<targets::Guard> guard_;  // ends stops that this tool cannot end
  bool is_named_;                        // else all that the scope selects
  std::vector<base::Pid> named_;
  std::map<base::Pid, base::ProcessId> identities_;  // of named processes
  std::set<std::pair<base::Pid, std::string>> reported_;
  // The latest round.
  std::vector<inspect::DumpedProcess> processes_;
  inspect::TaskHistory tasks_;
  std::set<base::Tid> found_;  // of DumpCommand::tids
  std::size_t unreadable_ = 0;
  bool failed_ = false;
};

void Dumper::choose_threads(inspect::ProcessSnapshot& snapshot) {
  if (!command_.tids.empty()) {
    found_.merge(inspect::show_only(snapshot, command_.tids));
  }
}

std::vector<base::Pid> Dumper::candidates() const {
  if (is_named_) {
    return named_;
  }
  std::vector<base::Pid> chosen;
  for (const auto pid : targets::visible_processes()) {
    if (targets::is_in(command_.scope, pid)) {
      chosen.push_back(pid);
    }
  }
  return chosen;
}

void Dumper::report(base::Pid pid, const python::Refusal& refusal) {
  const auto text = base::printable(python::describe(refusal));
  if (reported_.emplace(pid, text).second) {
    logger_.log(is_named_ ? base::LogLevel::kError : base::LogLevel::kWarning,
                fmt::format("pid {}: cannot dump: {}", pid.value(), text));
  }
  failed_ = failed_ || is_named_;
}

// The C functions of threads that are blocked are found without a stop, those of others only with
// one.
std::variant<inspect::ProcessSnapshot, python::Refusal> Dumper::take_snapshot(
    base::Pid pid, const python::Target* target) {
  constexpr int kAttempts = 3;
  for (int attempt = 0; !command_.stop && attempt < kAttempts; ++attempt) {
    auto taken = inspect::take_snapshot(pid, target, {.locals = command_.locals});
    if (!taken) {
      return python::Refusal{.reason = Reason::kExited, .found = "it has exited", .remedy = {}};
    }
    if (!command_.native || inspect::add_native_of_blocked(*taken, target)) {
      return std::move(*taken);
    }
  }
  return take_snapshot_stopped(pid, target);
}

std::variant<inspect::ProcessSnapshot, python::Refusal> Dumper::take_snapshot_stopped(
    base::Pid pid, const python::Target* target) {
  if (!guard_) {
    guard_.emplace(*detector_, *injector_, logger_,
                   targets::GuardOptions{.session = base::ProcessId{}});
    guard_->expect_stops();
  }
  std::optional<inspect::NativeStacks> native;
  inspect::TracedStop::OnStop on_stop;
  if (command_.native) {
    native.emplace(target);
    on_stop = [&native](const auto& registers) { native->copy(registers); };
  }
  inspect::TracedStop stop{on_stop};
  auto taken = inspect::take_snapshot_stopped(pid, target, stop, command_.locals);
  if (auto* const snapshot = std::get_if<inspect::ProcessSnapshot>(&taken);
      snapshot != nullptr && native) {
    const auto stacks = native->unwind();
    for (auto& thread : snapshot->threads) {
      if (const auto found = stacks.find(thread.tid); found != stacks.end()) {
        inspect::interleave(thread, found->second);
      }
    }
  }
  if (auto* const refusal = std::get_if<python::Refusal>(&taken);
      refusal != nullptr && !python::has_gone(refusal->reason)) {
    refusal->remedy +=
        fmt::format("{}without {}, dump stops nothing", refusal->remedy.empty() ? "" : "; ",
                    command_.native ? "--native" : "--stop");
  }
  return taken;
}

bool Dumper::dump_process(base::Pid pid, const python::Detection& detection) {
  inspect::DumpedProcess process{.pid = pid, .snapshot = {}, .refusal = {}};
  const auto* target = std::get_if<python::Target>(&detection);
  const auto* const refused = std::get_if<python::Refused>(&detection);
  const auto take = [&] {
    auto taken = take_snapshot(pid, target);
    if (auto* const refusal = std::get_if<python::Refusal>(&taken)) {
      process.refusal = std::move(*refusal);
    } else {
      process.snapshot = std::get<inspect::ProcessSnapshot>(std::move(taken));
      choose_threads(*process.snapshot);
      tasks_.add(*process.snapshot, std::chrono::steady_clock::now().time_since_epoch());
    }
  };
  if (refused != nullptr) {
    if (has_threads_to_show(refused->refusal.reason)) {
      take();
    }
    process.refusal = refused->refusal;
  } else {
    const auto [known, first] = identities_.try_emplace(pid, target->id);
    if (first || !is_named_ || known->second == target->id) {
      take();
    } else {
      process.refusal = {.reason = Reason::kExited, .found = "it has exited", .remedy = {}};
    }
    if (process.snapshot && !process.snapshot->no_stacks.empty()) {
      process.refusal = {
          .reason = Reason::kLayoutMismatch,
          .found = "its Python stacks cannot be read: " + process.snapshot->no_stacks,
          .remedy = {}};
    }
  }
  if (process.refusal) {
    report(pid, *process.refusal);
  }
  const bool shown = process.snapshot.has_value();
  if (shown || is_named_) {
    processes_.push_back(std::move(process));
  }
  return shown;
}

// A failure at one process does not end the others' dumps.
bool Dumper::try_to_dump(base::Pid pid, const python::Detection& detection) {
  try {
    return dump_process(pid, detection);
  } catch (const base::Error& error) {
    logger_.error("pid {}: cannot dump: {}", pid.value(), base::printable(error.what()));
    failed_ = true;
    return false;
  }
}

void Dumper::take_round() {
  processes_.clear();
  found_.clear();
  unreadable_ = 0;
  failed_ = false;
  const bool named = is_named_;
  const auto pids = candidates();
  const auto examined =
      targets::examine_all(*detector_, pids, base::Cancellation::never(),
                           named ? targets::kPatienceNamed : targets::kPatienceUnnamed);
  bool shown = false;
  for (std::size_t i = 0; i < pids.size(); ++i) {
    const auto& detection = examined[i].detection;
    const auto* const refused = std::get_if<python::Refused>(&detection);
    const bool known_python = refused == nullptr || refused->version != python::Version{} ||
                              !refused->interpreter.empty();
    if (named || known_python) {
      shown = try_to_dump(pids[i], detection) || shown;
    } else if (refused->refusal.reason == Reason::kNoPermission) {
      ++unreadable_;
    }
  }
  failed_ = failed_ || (!named && !shown);
  for (const auto tid : command_.tids) {
    if (!found_.contains(tid)) {
      failed_ = true;
      if (reported_.emplace(tid.value(), "no thread").second) {
        logger_.error("there is no thread {}{}", tid.value(),
                      command_.pids.empty() ? "" : " of these processes");
      }
    }
  }
}

void Dumper::write(bool clear) const {
  std::string text = clear ? "\033[H\033[2J" : "";
  if (command_.json) {
    text = inspect::to_json(
        processes_, command_.period ? inspect::JsonForm::kLine : inspect::JsonForm::kIndented);
  } else {
    for (const auto& process : processes_) {
      if (process.snapshot) {
        text += dumped_text(*process.snapshot, command_, verbose_) + "\n";
      }
    }
  }
  base::write_all(STDOUT_FILENO, text, "standard output");
}

int Dumper::dump() {
  take_round();
  write(false);
  if (!is_named_ && processes_.empty()) {
    logger_.error("no Python process that can be dumped {}; perf-pyinject status lists them",
                  missing_text(command_.scope));
  }
  if (unreadable_ != 0) {
    logger_.warning("{} could not be inspected: {}",
                    base::counted(unreadable_, "process", "processes"),
                    procfs::how_to_get(procfs::Capability::kSysPtrace));
  }
  return failed_ ? kFailure : 0;
}

void Dumper::forget_exited() {
  for (const auto& process : processes_) {
    if (process.refusal && python::has_gone(process.refusal->reason)) {
      std::erase(named_, process.pid);
    }
  }
}

int Dumper::watch() {
  targets::StopSignals signals;
  bool first = true;
  bool failed = false;
  while (true) {
    const auto next = base::Deadline::after(*command_.period);
    take_round();
    write(output_.terminal && !command_.json);
    failed = first ? failed_ : failed;
    first = false;
    if (is_named_) {
      forget_exited();
      if (named_.empty()) {
        return failed ? kFailure : 0;
      }
    }
    pollfd stop{.fd = signals.fd(), .events = POLLIN, .revents = 0};
    ::poll(&stop, 1, next.remaining_ms());
    if (signals.next()) {
      return failed ? kFailure : 0;
    }
  }
}

int Dumper::run() {
  const int status = command_.period ? watch() : dump();
  if (guard_) {
    guard_->dismiss();
  }
  return status;
}

int run_dump(const CommandLine& line, Reporter& reporter, const Terminal& /*terminal*/) {
  const auto& command = std::get<DumpCommand>(line.options);
  if (command.core) {
    return dump_core(command, line.verbosity == Verbosity::kVerbose, reporter.logger());
  }
  return Dumper{line, reporter.logger()}.run();
}

}  // namespace

const VerbSpec dump_verb{.name = "dump",
                         .summary = "print what each thread does now, with its Python stack",
                         .options = kDumpOptions,
                         .parse = parse_dump,
                         .run = run_dump,
                         .help = kDumpHelp,
                         .operands = Completed::kPids};

}  // namespace pyinject::cli
