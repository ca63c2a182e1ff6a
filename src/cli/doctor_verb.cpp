#include "base/file.hpp"
#include "cli/command_line.hpp"
#include "cli/verb_options.hpp"
#include "cli/verbs.hpp"
#include "doctor/collect.hpp"
#include "doctor/report.hpp"

#include <string_view>
#include <utility>

#include <unistd.h>

namespace pyinject::cli {

namespace {

constexpr auto kDoctorOptions = std::to_array<Option>({
    rows::kPid.with("also check these processes"),
    rows::kPerf.with("perf to check (default: PERF, or perf on PATH)"),
    {"--json", "for programs: docs/doctor-json.md describes the fields"},
});

constexpr std::string_view kDoctorHelp =
    R"(usage: perf-pyinject doctor [PID[,PID...]] [OPTION...]

Checks whether this machine has what recording needs: perf, the kernel and its
settings, rights, container boundaries, and space in the current directory for
perf.data. With PID, also whether each engine can record these processes. Each
line begins with

  ok       nothing is missing
  limited  recording works, with less: "cost:" says what is missing
  failed   record -p cannot work

and "fix:" is the command, or what to do. Nothing is changed, and no process is
stopped. perf makes a trial recording of a command that does nothing.

{options}

exit status: 0 if record would work with some engine, with each process of -p;
1 if it would not; 125 if doctor itself failed; 129 for a wrong option.

examples:
  perf-pyinject doctor
  perf-pyinject doctor -p 4711
  perf-pyinject doctor --json | jq '.checks[] | select(.state != "ok")'
)";

void parse_doctor(const VerbArguments& arguments, CommandLine& line) {
  auto parsed = parse_words(doctor_verb, arguments, Operands::kTargets, line);
  line.options = DoctorCommand{
      .pids = std::move(parsed.pids), .json = parsed.has("json"), .perf = std::move(parsed.perf)};
}

int run_doctor(const CommandLine& line, Reporter& /*reporter*/, const Terminal& /*terminal*/) {
  constexpr int kWouldNotWork = 1;
  const auto& command = std::get<DoctorCommand>(line.options);
  const auto judgement = doctor::judge(doctor::collect(command.perf, command.pids));
  base::write_all(STDOUT_FILENO,
                  command.json ? doctor::to_json(judgement) : doctor::to_text(judgement),
                  "standard output");
  return judgement.works() ? 0 : kWouldNotWork;
}

}  // namespace

const VerbSpec doctor_verb{.name = "doctor",
                           .summary = "check what recording needs, and how to get it",
                           .options = kDoctorOptions,
                           .parse = parse_doctor,
                           .run = run_doctor,
                           .help = kDoctorHelp,
                           .operands = Completed::kPids,
                           .reads_proc = false};

}  // namespace pyinject::cli
