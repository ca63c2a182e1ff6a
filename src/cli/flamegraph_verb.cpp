#include "base/format.hpp"
#include "base/text.hpp"
#include "cli/command_line.hpp"
#include "cli/output_file.hpp"
#include "cli/page_sources.hpp"
#include "cli/profile_source.hpp"
#include "cli/reporter.hpp"
#include "cli/source_file.hpp"
#include "cli/terminal.hpp"
#include "cli/verb_options.hpp"
#include "cli/verbs.hpp"
#include "export/flamegraph.hpp"
#include "pyinject/base/child.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"
#include "report/wall_clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace pyinject::cli {

namespace {

using record::kFailure;
using record::kUsage;

constexpr std::chrono::seconds kOpens{10};

constexpr auto kFlamegraphOptions = std::to_array<Option>({
    under("which processes", rows::kPid),
    rows::kChildren,
    rows::kAllCpus,
    rows::kUid,
    rows::kComm,
    rows::kCgroup,
    under("how", rows::kDuration),
    rows::kFreq,
    rows::kOffCpu,
    {"--wall", "draw CPU time and waits in one graph, too; implies --off-cpu"},
    rows::kEngine,
    rows::kPerfOfPicture,
    under("output", rows::kInput),
    {"-o, --output F", "the HTML file (default: flamegraph.html); - for stdout", Completed::kFiles},
    {"--diff OLD",
     "colour by the difference to the recording OLD: red functions take more than before, blue "
     "ones less",
     Completed::kRecordings},
    {"--title TEXT", "title of the page"},
    rows::kNoSource,
    {"--open", "show it in the browser (xdg-open)"},
});

constexpr std::string_view kFlamegraphHelp =
    R"(usage: perf-pyinject flamegraph (PID[,PID...] | NAME | -a | -u USER |
                                 --comm GLOB | -G CGROUP) [OPTION...]
       perf-pyinject flamegraph [OPTION...] [FILE]

Draws a flame graph: one HTML file, which needs no network. The first form
records for some seconds, or until Ctrl-C; the second one reads FILE (default:
perf.data), a recording by this tool or by perf.

In the browser: Python functions and the C functions that they call; 2 shows all
functions, the interpreter's, too. Click to zoom, / to search, t for one graph
per thread; click a second of the heat map, or drag over a range, for its flame
graph. ? shows all keys.

{options}

exit status: 0; 125 nothing to draw, or refused; 128 + N signal N; 129 usage

examples:
  perf-pyinject flamegraph 4711 -d 10 -o web.html
  perf-pyinject flamegraph perf.data --diff perf.data.old
)";

void parse_flamegraph(const VerbArguments& arguments, CommandLine& line) {
  auto parsed = parse_words(flamegraph_verb, arguments, Operands::kOne, line);
  if (line.help) {
    return;
  }
  FlamegraphCommand command{.source = parse_source(flamegraph_verb, parsed)};
  command.output = parsed.value("output").value_or("flamegraph.html");
  command.before = parsed.value("diff");
  command.title = parsed.value("title");
  command.sources = !parsed.has("no-source");
  command.open = parsed.has("open");
  command.wall = parsed.has("wall");
  if (command.wall && command.source.record) {
    command.source.record->flags.off_cpu = true;
    command.source.record->perf_options.add({"-e", "cpu-clock"});  // its samples have times
  }
  if (command.open && command.output == "-") {
    throw CommandLineError{"--open needs a file: -o FILE", kUsage};
  }
  line.options = std::move(command);
}

// As far as it is known before a recording; empty: that says it.
std::string title_of(const FlamegraphCommand& command) {
  if (command.title) {
    return *command.title;
  }
  const auto& source = command.source;
  if (!source.record || source.record->pids().size() != 1) {
    return "";
  }
  return title_of_process(source.record->pids().front()) +
         (source.record->families() ? " and its children" : "");
}

// "web.data: python3 (pid 4711)".
std::string title_of(const std::string& file, const report::Profile& profile) {
  return fmt::format("{}: {}", base::printable(std::filesystem::path{file}.filename().string()),
                     processes_of(profile));
}

// Starts the browser; a failure is not one of the picture.
void open_page(const std::string& path, base::Logger& logger) {
  try {
    base::Child child{{.argv = {"xdg-open", path}}};
    const auto status = child.wait(base::Deadline::after(kOpens));
    if (status && !status->success()) {
      logger.warning("--open: xdg-open {}: {}", base::printable(path), base::describe(*status));
    }
  } catch (const base::Error& error) {
    logger.warning("--open: {}", base::printable(error.what()));
  }
}

int run_flamegraph(const CommandLine& line, Reporter& reporter, const Terminal& terminal) {
  const auto& command = std::get<FlamegraphCommand>(line.options);
  auto& logger = reporter.logger();
  std::optional<report::Profile> before;
  if (command.before) {
    before = read_recording(*command.before, reporter, is_live(line, terminal));
    if (!before) {
      return kFailure;
    }
  }
  auto title = title_of(command);
  OutputFile file{command.output};  // fails before the recording, not after it
  auto loaded = load_profile(command.source, line, reporter, terminal);
  if (const auto* const status = std::get_if<int>(&loaded)) {
    return *status;
  }
  auto& profile = std::get<report::Profile>(loaded);
  const bool live = command.source.record.has_value();
  if (title.empty()) {
    title = live ? processes_of(profile) : title_of(command.source.file, profile);
  }
  if (before && !command.title) {
    title += ", compared with " + title_of(*command.before, *before);
  }
  exports::FlamegraphOptions options{.title = title, .facts = page_facts(profile, live)};
  const auto facts = facts_of(profile);
  if (command.wall &&
      (!report::add_wall_clock(profile) || (before && !report::add_wall_clock(*before)))) {
    logger.error("--wall needs CPU time and waits: record with -e cpu-clock --off-cpu");
    return kFailure;
  }
  if (command.sources) {
    const auto read = live ? source_reader(std::time(nullptr)) : source_reader(command.source.file);
    options.sources = page_sources(profile, read);
  }
  file.write(exports::flamegraph(profile, before ? &*before : nullptr, options));
  file.complete();
  if (command.output != "-") {
    const auto named =
        std::ranges::count(profile.functions, report::Kind::kPython, &report::Function::kind);
    logger.info("{}: {}, names of {}{}; open it in a browser", base::printable(command.output),
                facts, base::counted(static_cast<std::uint64_t>(named), "Python function"),
                sources_text(options.sources));
  }
  if (command.open) {
    open_page(command.output, logger);
  }
  return 0;
}

}  // namespace

const VerbSpec flamegraph_verb{.name = "flamegraph",
                               .summary = "draw a flame graph of processes or of a recording",
                               .options = kFlamegraphOptions,
                               .parse = parse_flamegraph,
                               .run = run_flamegraph,
                               .help = kFlamegraphHelp,
                               .operands = Completed::kRecordings};

}  // namespace pyinject::cli
