#include "cli/command_line.hpp"
#include "cli/console.hpp"
#include "cli/reporter.hpp"
#include "cli/verb_options.hpp"
#include "cli/verbs.hpp"
#include "pyinject/record/weave_file.hpp"
#include "pyinject/targets/stop_signals.hpp"

#include <array>
#include <string_view>

namespace pyinject::cli {

namespace {

constexpr auto kWeaveOptions = std::to_array<Option>({
    {"-o, --output PATH", "the result; default: replace FILE", Completed::kFiles},
    rows::kPythonOnly,
    {"--names", "only add the names in FILE to perf's build-id cache"},
    rows::kPerfOfCache,
});

constexpr std::string_view kWeaveHelp =
    R"(usage: perf-pyinject weave FILE [-o OUTPUT] [OPTION...]

Unwinds the stacks of a perf.data that was recorded without perf-pyinject.
Copied stacks (--call-graph dwarf) become callchains, across CPython's
trampolines too. Names from perf maps go into perf's build-id cache. The
programs, libraries and /tmp/perf-PID.map of the recording must not have
changed. record does all this already. A recording of it holds its names:
--names gives them to perf of another user or machine.

{options}

examples:
  perf record --call-graph dwarf,32768 -p 4711 -- sleep 10
  perf-pyinject weave perf.data -o whole.data && perf report -i whole.data
  perf-pyinject weave --python-only perf.data -o python.data
  perf-pyinject weave --names copied.data && perf report -i copied.data
)";

void parse_weave(const VerbArguments& arguments, CommandLine& line) {
  const auto parsed = parse_words(weave_verb, arguments, Operands::kOne, line);
  if (line.help) {
    return;
  }
  if (parsed.has("names") && (parsed.has("output") || parsed.flags.python_only)) {
    throw CommandLineError{"--names leaves FILE as it is: not with -o or --python-only",
                           record::kUsage};
  }
  const auto& files = parsed.split.command;
  if (files.size() != 1) {
    throw CommandLineError{"weave takes one file: perf-pyinject weave perf.data", record::kUsage};
  }
  line.options = record::WeaveFileOptions{.input = files.front(),
                                          .output = parsed.value("output").value_or(files.front()),
                                          .perf = parsed.perf,
                                          .python_only = parsed.flags.python_only,
                                          .only_names = parsed.has("names")};
}

int run_weave(const CommandLine& line, Reporter& reporter, const Terminal& terminal) {
  auto options = std::get<record::WeaveFileOptions>(line.options);
  Console console{reporter.logger(), is_live(line, terminal), name_of_perf(options.perf)};
  targets::StopSignals signals;
  int signal = 0;
  options.interrupted = [&] {
    signal = signals.next().value_or(0);
    return signal != 0;
  };
  const int status = record::weave_file(options, reporter.logger(), console);
  return signal == 0 ? status : 128 + signal;
}

}  // namespace

const VerbSpec weave_verb{.name = "weave",
                          .summary = "unwind a perf.data that was recorded without perf-pyinject",
                          .options = kWeaveOptions,
                          .parse = parse_weave,
                          .run = run_weave,
                          .help = kWeaveHelp,
                          .operands = Completed::kRecordings,
                          .reads_proc = false};

}  // namespace pyinject::cli
