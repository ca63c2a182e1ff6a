#include "base/file.hpp"
#include "base/format.hpp"
#include "bpf/sampler.hpp"
#include "cli/command_line.hpp"
#include "cli/reporter.hpp"
#include "cli/terminal.hpp"
#include "cli/verb_options.hpp"
#include "cli/verbs.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/targets/status_report.hpp"

#include <array>
#include <string_view>
#include <vector>

#include <unistd.h>

namespace pyinject::cli {

namespace {

constexpr auto kStatusOptions = std::to_array<Option>({
    rows::kPid.with("only these processes"),
    rows::kUid,
    rows::kComm,
    rows::kCgroup,
    {"--json", "for programs: docs/status-json.md describes the fields"},
    rows::kLogFormat,
    rows::kQuiet,
    rows::kVerbose.with("also print each process's reason and interpreter file"),
});

constexpr std::string_view kStatusHelp =
    R"(usage: perf-pyinject status [PID[,PID...] | NAME | -u USER | --comm GLOB |
                             -G CGROUP] [OPTION...]

Lists the visible Python processes, or these: pid, user, version, frame pointers
of the interpreter (FP), whether the process can be recorded (STATE), and
command line. A line below the table explains each reason. No process is stopped
or changed.

  ready              record and activate work
  on by us           perf-pyinject has switched the trampoline on
  on by us (session gone)  a killed perf-pyinject left the trampoline on:
                     perf-pyinject deactivate --abandoned
  on by itself       the program has switched its trampoline on
  only --engine bpf  record needs --engine bpf
  any other name     why it cannot be recorded: REASONS in perf-pyinject(1)

{options}

examples:
  perf-pyinject status
  perf-pyinject status --json 4711 | jq '.processes[0].ready'
)";

void parse_status(const VerbArguments& arguments, CommandLine& line) {
  auto parsed = parse_words(status_verb, arguments, Operands::kTargets, line);
  if (line.help) {
    return;
  }
  line.options =
      StatusCommand{.pids = parsed.pids, .scope = parse_scope(parsed), .json = parsed.has("json")};
}

int run_status(const CommandLine& line, Reporter& reporter, const Terminal& /*terminal*/) {
  const auto& command = std::get<StatusCommand>(line.options);
  const auto detector = python::make_detector();
  const auto observer =
      bpf::built_in() && !command.json ? python::make_detector(python::Purpose::kObserve) : nullptr;
  auto report = targets::report_status(*detector, command.pids, observer.get());
  std::erase_if(report.processes, [&command](const auto& status) {
    return !targets::is_in(command.scope, status.pid);
  });
  if (report.processes.empty() && command.scope.narrow() && !command.json) {
    reporter.logger().error("no Python process {}; perf-pyinject status lists them",
                            missing_text(command.scope));
    return record::kFailure;
  }
  const targets::TableOptions table{.width = output_width(),
                                    .verbose = line.verbosity == Verbosity::kVerbose};
  base::write_all(STDOUT_FILENO,
                  command.json ? targets::to_json(report) : targets::to_table(report, table),
                  "standard output");
  for (const auto& status : report.processes) {
    if (status.refusal && status.refusal->reason == python::Reason::kNoSuchProcess) {
      return record::kFailure;
    }
  }
  return 0;
}

}  // namespace

const VerbSpec status_verb{.name = "status",
                           .summary = "list Python processes, and whether they can be recorded",
                           .options = kStatusOptions,
                           .parse = parse_status,
                           .run = run_status,
                           .help = kStatusHelp,
                           .operands = Completed::kPids};

}  // namespace pyinject::cli
