#include "base/text.hpp"
#include "cli/command_line.hpp"
#include "cli/console.hpp"
#include "cli/reporter.hpp"
#include "cli/verb_options.hpp"
#include "cli/verbs.hpp"
#include "pyinject/targets/stop_signals.hpp"
#include "record/verbs/join_recording.hpp"

#include <array>
#include <optional>
#include <string_view>

namespace pyinject::cli {

namespace {

constexpr auto kJoinOptions = std::to_array<Option>({
    rows::kPerfOfCache,
    rows::kGil,
    rows::kTasks,
    rows::kLines,
    rows::kPythonOnly,
    rows::kKeepRaw,
    rows::kStats,
});

constexpr std::string_view kJoinHelp =
    R"(usage: perf-pyinject join PERF_PID [OPTION...]

Adds Python stacks to a perf record that is already running with -g or
--call-graph. A BPF program reads them at perf's samples (needs CAP_BPF,
CAP_PERFMON, Linux 5.17 with BTF). When perf exits, join adds the stacks to
perf's file. Samples from before the join have no Python functions; samples of
threads and processes that started between perf and the join may lack them, too.
Ctrl-C detaches: perf goes on, and the stacks collected so far are added when
perf exits. A second Ctrl-C drops them. perf and its targets are otherwise
unchanged.

{options}

exit status: 0 if perf's file has the stacks and no signal came; 125 refused or
failed; 128 + N after signal N; 129 usage

example:
  perf record -F 99 -g -p 4711 &
  perf-pyinject join $!
)";

void parse_join(const VerbArguments& arguments, CommandLine& line) {
  const auto parsed = parse_words(join_verb, arguments, Operands::kOne, line);
  if (line.help) {
    return;
  }
  const auto& words = parsed.split.command;
  const auto number = words.size() == 1 ? base::parse_number<pid_t>(words.front()) : std::nullopt;
  if (number.value_or(0) <= 0) {
    throw CommandLineError{
        "join needs the pid of a running perf record: perf-pyinject join PERF_PID", record::kUsage};
  }
  line.options =
      record::JoinOptions{.perf = base::Pid{*number}, .search = parsed.perf, .flags = parsed.flags};
}

int run_join(const CommandLine& line, Reporter& reporter, const Terminal& terminal) {
  const auto& options = std::get<record::JoinOptions>(line.options);
  Console console{reporter.logger(), is_live(line, terminal), name_of_perf(options.search),
                  &reporter};
  targets::StopSignals stop;
  return record::join_recording(options, reporter.logger(), console, stop);
}

}  // namespace

const VerbSpec join_verb{.name = "join",
                         .summary = "add Python stacks to a perf record that is already running",
                         .options = kJoinOptions,
                         .parse = parse_join,
                         .run = run_join,
                         .help = kJoinHelp,
                         .operands = Completed::kPerfPid};

}  // namespace pyinject::cli
