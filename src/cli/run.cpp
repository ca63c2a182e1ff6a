#include "cli/run.hpp"

#include "base/file.hpp"
#include "base/format.hpp"
#include "calls/call_trace.hpp"
#include "cli/command_line.hpp"
#include "cli/console.hpp"
#include "cli/default_engine.hpp"
#include "cli/help.hpp"
#include "cli/reporter.hpp"
#include "cli/verbs.hpp"
#include "events/processor_events.hpp"
#include "procfs/executable.hpp"
#include "procfs/own_rights.hpp"
#include "push/client.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/version.hpp"
#include "record/choose_engine.hpp"
#include "recorder/recorder.hpp"
#include "weave/debug_servers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace pyinject::cli {

namespace {

using record::kFailure;

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

// Otherwise a later descriptor below 3 would receive messages.
void open_standard_descriptors() {
  int fd = -1;
  do {
    fd = ::open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd < 3);
  ::close(fd);
}

std::string version_text() {
  std::string engines;
  std::string missing;
  for (const auto& engine : record::engine_names()) {
    if (engine.built_in != nullptr && engine.built_in()) {
      engines += fmt::format("{}{}", engines.empty() ? "" : ", ", engine.name);
    } else if (engine.built_in != nullptr) {
      missing += fmt::format(" (without {}: no {})", engine.needs, engine.name);
    }
  }
  return fmt::format(
      "perf-pyinject {}\nengines: {}{}\nfunctions: {}\npush: {}\ndebuginfod: {}\nnew processes: "
      "{}\n",
      PYINJECT_VERSION, engines, missing,
      calls::can_read_calls() ? "yes" : "no (without libtraceevent)",
      push::can_send() ? "yes" : "only to directories (without libcurl)",
      weave::DebugServers::usable() ? "yes" : "no",
      events::built_in() ? "reported by perf's events" : "polled (without libperf)");
}

// ARGUMENTS for PROGRAM as a command line for root, whose sudo has a PATH of its own.
std::string command_of_root(const std::string& program, const std::vector<std::string>& arguments) {
  auto command = "sudo " + shell_word(program);
  for (const auto& argument : arguments) {
    command += " " + shell_word(argument);
  }
  return command;
}

int run_reported(const CommandLine& line, const std::vector<std::string>& arguments,
                 const Terminal& terminal) {
  Reporter reporter{std::string{line.verb->name}, line.report, level_of(line.verbosity),
                    terminal.color};
  int status = kFailure;
  try {
    if (line.verb->reads_proc && !procfs::proc_is_of_our_pid_namespace()) {
      throw base::Error{
          "/proc belongs to another pid namespace: its pids are other processes here; mount the "
          "/proc of this namespace (unshare --mount-proc)"};
    }
    status = line.verb->run(line, reporter, terminal);
  } catch (const std::exception& error) {
    reporter.logger().error("{}", error.what());
  }
  const auto program = procfs::own_path();
  if (program && reporter.names_root() && ::geteuid() != 0) {
    reporter.logger().info("as root: {}", command_of_root(*program, arguments));
  }
  return reporter.finish(status);
}

std::optional<std::string> environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>{value};
}

// Works even if the rest of the command line is invalid.
bool asks_for_json(const std::vector<std::string>& arguments) {
  const auto end = std::ranges::find(arguments, "--");
  const auto option = std::find(arguments.begin(), end, "--log-format");
  return std::find(arguments.begin(), end, "--log-format=json") != end ||
         (option != end && option + 1 != end && *(option + 1) == "json");
}

}  // namespace

int run(int argc, char** argv) {
  open_standard_descriptors();
  const std::vector<std::string> words{argv, argv + argc};
  if (argc > 1 && words[1] == recorder::kWord) {
    return recorder::record(std::span{words}.subspan(2), words);
  }
  const Terminal terminal = look_at_terminal();
  const std::vector<std::string> arguments{argv + (argc > 0 ? 1 : 0), argv + argc};
  const ReportOptions wished{.json = asks_for_json(arguments)};
  Reporter early{{}, wished, base::LogLevel::kInfo, terminal.color};
  base::Logger& plain = early.logger();
  try {
    const auto line = parse_command_line(arguments, environment("PERF"), [] {
      return find_default_engine(default_engine_sources());
    });
    if (line.help) {
      const auto text = line.verb == nullptr ? general_help() : verb_help(*line.verb);
      base::write_all(STDOUT_FILENO, text, "standard output");
      return 0;
    }
    if (line.version) {
      base::write_all(STDOUT_FILENO, version_text(), "standard output");
      return 0;
    }
    return run_reported(line, arguments, terminal);
  } catch (const CommandLineError& error) {
    plain.error("{}", error.what());
    if (error.status() == record::kUsage) {
      const auto* const verb = arguments.empty() ? nullptr : find_verb(arguments.front());
      plain.info("see perf-pyinject {}--help",
                 verb == nullptr ? std::string{} : std::string{verb->name} + " ");
    }
    return error.status();
  } catch (const std::exception& error) {
    plain.error("{}", error.what());
    return kFailure;
  }
}

}  // namespace pyinject::cli
