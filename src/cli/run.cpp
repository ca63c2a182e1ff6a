#include "cli/run.hpp"

#include "base/file.hpp"
#include "base/format.hpp"
#include "bpf/sampler.hpp"
#include "calls/call_trace.hpp"
#include "cli/command_line.hpp"
#include "cli/console.hpp"
#include "cli/function_calls.hpp"
#include "cli/help.hpp"
#include "cli/reporter.hpp"
#include "procfs/own_rights.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/python/injector.hpp"
#include "pyinject/record/record_session.hpp"
#include "pyinject/record/weave_file.hpp"
#include "pyinject/targets/guard.hpp"
#include "pyinject/targets/manager.hpp"
#include "pyinject/targets/status_report.hpp"
#include "pyinject/targets/stop_signals.hpp"
#include "pyinject/targets/target_selection.hpp"
#include "pyinject/version.hpp"
#include "record/verbs/join_recording.hpp"
#include "targets/abandoned.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace pyinject::cli {

namespace {

using session::kFailure;

base::LogLevel level_of(Verbosity verbosity) {
  switch (verbosity) {
    case Verbosity::kQuiet:
      return base::LogLevel::kWarning;
    case Verbosity::kNormal:
      return base::LogLevel::kInfo;
    case Verbosity::kVerbose:
      return base::LogLevel::kDebug;
  }
  return base::LogLevel::kInfo;
}

// A descriptor below 3 that we open for something else would receive messages.
void open_standard_descriptors() {
  int fd = -1;
  do {
    fd = ::open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd < 3);
  ::close(fd);
}

// As the user would have to call it to read what it recorded: other versions may be unable to.
std::string name_of_perf(const perf::PerfSearch& search) {
  if (search.option) {
    return *search.option;
  }
  return search.environment.value_or("").empty() ? "perf" : *search.environment;
}

std::string version_text() {
  return fmt::format("perf-pyinject {}\nengines: trampoline{}\nfunctions: {}\n", PYINJECT_VERSION,
                     bpf::built_in() ? ", bpf" : " (without libbpf: no bpf)",
                     calls::can_read_calls() ? "yes" : "no (without libtraceevent)");
}

// A moving line among JSON objects would be none of them.
bool is_live(const CommandLine& line, const Terminal& terminal) {
  return terminal.live && line.verbosity != Verbosity::kQuiet && !line.report.json;
}

int run_record(const CommandLine& line, Reporter& reporter, const Terminal& terminal) {
  auto& logger = reporter.logger();
  Console console{logger, is_live(line, terminal), name_of_perf(line.record.perf), &reporter};
  if (line.functions) {
    return run_record_functions(line, logger, console);
  }
  const auto detector = python::make_detector();
  const auto injector = python::make_injector();
  if (!line.repeat) {
    return session::record(line.record, *detector, *injector, logger, console);
  }
  auto repeat = *line.repeat;
  repeat.done = [&](int status) { (void)reporter.finish(status); };
  return session::record_repeatedly(line.record, repeat, *detector, *injector, logger, console);
}

int run_join(const CommandLine& line, Reporter& reporter, const Terminal& terminal) {
  const auto& record = line.record;
  Console console{reporter.logger(), is_live(line, terminal), name_of_perf(record.perf), &reporter};
  return session::join_recording({.perf = line.pids.front(),
                                  .search = record.perf,
                                  .lines = record.lines,
                                  .gil = record.gil,
                                  .tasks = record.tasks,
                                  .keep_raw = record.keep_raw},
                                 reporter.logger(), console);
}

int run_wrapped(const CommandLine& line, base::Logger& logger) {
  const auto detector = python::make_detector();
  const auto injector = python::make_injector();
  Console console{logger, false, name_of_perf(line.wrapped.perf)};
  return session::wrap_perf(line.wrapped, *detector, *injector, logger, console);
}

int run_weave(const CommandLine& line, base::Logger& logger, const Terminal& terminal) {
  Console console{logger, is_live(line, terminal), name_of_perf(line.record.perf)};
  session::StopSignals signals;
  int signal = 0;
  const int status = session::weave_file({.input = line.input,
                                          .output = line.output,
                                          .perf = line.record.perf,
                                          .interrupted =
                                              [&] {
                                                signal = signals.next().value_or(0);
                                                return signal != 0;
                                              }},
                                         logger, console);
  return signal == 0 ? status : 128 + signal;
}

int run_activate(const CommandLine& line, Reporter& reporter) {
  auto& logger = reporter.logger();
  const auto detector = python::make_detector();
  const auto injector = python::make_injector();
  session::Guard guard{*detector, *injector, logger, {.session = base::ProcessId{}}};
  session::ManagerOptions options{.strict = line.strict,
                                  .deactivation_deadline = line.deactivation_deadline};
  options.before_activation = [&](const auto& target) {
    if (target.state == python::TrampolineState::kOff) {
      guard.watch(target);
    }
  };
  options.on_event = [&](const auto& event) { reporter.note(event); };
  const auto manager = session::make_manager(*detector, *injector, logger, options);
  manager->on_activation(
      [&](const session::ActiveTarget& active) { logger.info("{}", activation_line(active)); });
  auto selection = manager->select(session::without_repetitions(line.pids));
  if (line.strict && !selection.complete) {
    reporter.take(manager->stats());
    return kFailure;
  }
  guard.expect_stops();  // also of targets that are on already
  const bool done = manager->activate_all(std::move(selection.targets));
  reporter.take(manager->stats());
  guard.dismiss();
  return done && !manager->active().empty() ? 0 : kFailure;
}

int run_deactivate(const CommandLine& line, Reporter& reporter) {
  auto& logger = reporter.logger();
  const auto detector = python::make_detector();
  const auto injector = python::make_injector();
  session::Guard guard{*detector, *injector, logger, {}};
  session::ManagerOptions options{.deactivation_deadline = line.deactivation_deadline};
  bool left_on = false;  // but for what a living session will switch off itself
  options.on_event = [&](const session::Event& event) {
    left_on = left_on || (event.kind == session::EventKind::kFailed &&
                          event.reason != python::Reason::kOtherSession);
    reporter.note(event);
  };
  const auto manager = session::make_manager(*detector, *injector, logger, options);
  session::Selection selection;
  if (line.abandoned) {
    selection.targets = session::abandoned_targets(*detector, logger);
  } else {
    selection = manager->select(session::without_repetitions(line.pids));
  }
  std::vector<python::Target> on;
  for (auto& target : selection.targets) {
    const auto pid = target.id.pid.value();
    if (target.state == python::TrampolineState::kOnByUs) {
      guard.watch(target);
      on.push_back(std::move(target));
    } else if (target.state == python::TrampolineState::kOff) {
      logger.info("pid {}: trampoline was already off", pid);
    } else {
      logger.warning("pid {}: trampoline is on by itself; left on", pid);
    }
  }
  const bool all_off = manager->deactivate_all(on);
  reporter.take(manager->stats());
  if (!left_on) {
    guard.dismiss();
  }
  if (all_off) {
    for (const auto& target : on) {
      logger.info("pid {}: trampoline off", target.id.pid.value());
    }
  }
  return all_off && selection.complete ? 0 : kFailure;
}

int run_status(const CommandLine& line) {
  const auto detector = python::make_detector();
  const auto report = session::report_status(*detector, line.pids);
  base::write_all(STDOUT_FILENO, line.json ? session::to_json(report) : session::to_table(report),
                  "standard output");
  for (const auto& status : report.processes) {
    if (status.refusal && status.refusal->reason == python::Reason::kNoSuchProcess) {
      return kFailure;
    }
  }
  return 0;
}

int run_verb(const CommandLine& line, Reporter& reporter, const Terminal& terminal) {
  const bool of_a_file = line.verb == Verb::kWeave || line.verb == Verb::kFunctions;
  if (!of_a_file && !procfs::proc_is_of_our_pid_namespace()) {
    throw base::Error{
        "/proc is that of another pid namespace, its numbers mean other processes here: mount "
        "one's "
        "own (unshare --mount-proc)"};
  }
  switch (line.verb) {
    case Verb::kNone:
      break;
    case Verb::kRecord:
      return run_record(line, reporter, terminal);
    case Verb::kJoin:
      return run_join(line, reporter, terminal);
    case Verb::kFunctions:
      return run_functions(line, reporter.logger());
    case Verb::kWrapped:
      return run_wrapped(line, reporter.logger());
    case Verb::kWeave:
      return run_weave(line, reporter.logger(), terminal);
    case Verb::kActivate:
      return run_activate(line, reporter);
    case Verb::kDeactivate:
      return run_deactivate(line, reporter);
    case Verb::kStatus:
      return run_status(line);
  }
  return session::kUsage;
}

int run_reported(const CommandLine& line, const std::string& verb, const Terminal& terminal) {
  Reporter reporter{verb, line.report, level_of(line.verbosity), terminal.color};
  int status = kFailure;
  try {
    status = run_verb(line, reporter, terminal);
  } catch (const std::exception& error) {
    reporter.logger().error("{}", error.what());
  }
  return reporter.finish(status);
}

std::optional<std::string> environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>{value};
}

// Also when the rest of the command line makes no sense.
bool asks_for_json(const std::vector<std::string>& arguments) {
  const auto end = std::ranges::find(arguments, "--");
  const auto option = std::find(arguments.begin(), end, "--log-format");
  return std::find(arguments.begin(), end, "--log-format=json") != end ||
         (option != end && option + 1 != end && *(option + 1) == "json");
}

}  // namespace

int run(int argc, char** argv) {
  open_standard_descriptors();
  const Terminal terminal = look_at_terminal();
  const std::vector<std::string> arguments{argv + (argc > 0 ? 1 : 0), argv + argc};
  const ReportOptions wished{.json = asks_for_json(arguments)};
  Reporter early{{}, wished, base::LogLevel::kInfo, terminal.color};
  base::Logger& plain = early.logger();
  try {
    const auto line = parse_command_line(arguments, environment("PERF"));
    if (line.help) {
      base::write_all(STDOUT_FILENO, help_text(line.verb), "standard output");
      return 0;
    }
    if (line.version) {
      base::write_all(STDOUT_FILENO, version_text(), "standard output");
      return 0;
    }
    return run_reported(line, arguments.front(), terminal);
  } catch (const CommandLineError& error) {
    plain.error("{}", error.what());
    if (error.status() == session::kUsage) {
      plain.info("see perf-pyinject --help");
    }
    return error.status();
  } catch (const std::exception& error) {
    plain.error("{}", error.what());
    return kFailure;
  }
}

}  // namespace pyinject::cli
