#include "base/format.hpp"
#include "base/text.hpp"
#include "cli/command_line.hpp"
#include "cli/output_file.hpp"
#include "cli/profile_source.hpp"
#include "cli/reporter.hpp"
#include "cli/terminal.hpp"
#include "cli/verb_options.hpp"
#include "cli/verbs.hpp"
#include "pyinject/export/formats.hpp"
#include "report/keep_event.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include <unistd.h>

namespace pyinject::cli {

namespace {

using record::kUsage;

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const auto& format : exports::formats()) {
    names.emplace_back(format.name);
  }
  return names;
}

std::vector<Choice> format_choices() {
  std::vector<Choice> choices;
  for (const auto& format : exports::formats()) {
    choices.push_back({format.name, format.summary});
  }
  return choices;
}

constexpr auto kExportOptions = std::to_array<Option>({
    under("output",
          {"-f, --format F", "one of these", Completed::kWord, "the format", {}, format_names}),
    {"-o, --output F", "the file; by default stdout", Completed::kFiles},
    rows::kInput,
    {"--event NAME", "only samples of this event: cpu-clock, context-switches, ..."},
    under("which processes, and how to record them", rows::kPid),
    rows::kChildren,
    rows::kAllCpus,
    rows::kUid,
    rows::kComm,
    rows::kCgroup,
    rows::kDuration,
    rows::kFreq,
    rows::kOffCpu.with("also record where threads wait"),
    rows::kWhat,
    rows::kEngine,
    rows::kPerfOfPicture,
    under("messages", rows::kStats),
});

constexpr std::string_view kExportHelp =
    R"(usage: perf-pyinject export -f FORMAT [OPTION...] [FILE]
       perf-pyinject export -f FORMAT (PID[,PID...] | NAME | -a | -u USER |
                             --comm GLOB | -G CGROUP) [OPTION...]

Writes a recording in the format of another tool. The first form reads FILE
(default: perf.data), a recording by this tool or by perf; the second one
records for some seconds.

formats:
{choices}

{options}

exit status: 0; 125 nothing to export, or refused; 129 usage

examples:
  perf-pyinject export -f pprof -o web.pb.gz && go tool pprof -top web.pb.gz
  perf-pyinject export -f folded -p 4711 -d 10 | flamegraph.pl > web.svg
)";

void parse_export(const VerbArguments& arguments, CommandLine& line) {
  auto parsed = parse_words(export_verb, arguments, Operands::kOne, line);
  if (line.help) {
    return;
  }
  const auto name = parsed.value("format");
  const auto* const format = name ? exports::find_format(*name) : nullptr;
  if (format == nullptr) {
    const auto formats = format_names();
    const std::vector<std::string_view> names(formats.begin(), formats.end());
    throw CommandLineError{
        name ? fmt::format("--format {}: expected one of: {}{}", base::printable(*name),
                           fmt::join(names, ", "), meant_text(*name, names))
             : fmt::format("export needs a format: -f {}", fmt::join(names, "|")),
        kUsage};
  }
  line.options = ExportCommand{.source = parse_source(export_verb, parsed),
                               .format = format,
                               .output = parsed.value("output").value_or("-"),
                               .event = parsed.value("event")};
}

record::ProfileCounts counts_of(const report::Profile& profile) {
  std::unordered_set<std::uint32_t> processes;
  for (const auto& sample : profile.samples) {
    processes.insert(profile.threads[sample.thread].pid);
  }
  return {.samples = profile.samples.size(), .lost = profile.lost, .processes = processes.size()};
}

// False: PROFILE has no such event.
bool select_event(const std::string& event, report::Profile& profile, base::Logger& logger) {
  if (report::keep_event(profile, event)) {
    return true;
  }
  std::vector<std::string> names;
  std::ranges::transform(profile.events, std::back_inserter(names),
                         [](const auto& known) { return base::printable(known.name); });
  logger.error("--event {}: the recording has: {}", base::printable(event), fmt::join(names, ", "));
  return false;
}

int run_export(const CommandLine& line, Reporter& reporter, const Terminal& terminal) {
  const auto& command = std::get<ExportCommand>(line.options);
  if (command.output == "-" && !command.format->text && ::isatty(STDOUT_FILENO) != 0) {
    reporter.logger().error("{} is a binary format: not written to a terminal; use -o FILE{}",
                            command.format->name, command.format->suffix);
    return record::kFailure;
  }
  OutputFile file{command.output};  // fails before the recording, not after it
  auto loaded = load_profile(command.source, line, reporter, terminal, true);
  if (const auto* const status = std::get_if<int>(&loaded)) {
    return *status;
  }
  if (!command.format->caution.empty()) {
    reporter.logger().warning("{}", command.format->caution);
  }
  auto& profile = std::get<report::Profile>(loaded);
  if (command.event && !select_event(*command.event, profile, reporter.logger())) {
    return record::kFailure;
  }
  if (profile.samples.empty()) {
    reporter.logger().warning("no samples");
  }
  reporter.add(counts_of(profile));
  command.format->write(profile, [&](std::string_view text) { file.write(text); });
  file.complete();
  return 0;
}

}  // namespace

const VerbSpec export_verb{.name = "export",
                           .summary = "write a recording for pprof, Perfetto, Firefox, ...",
                           .options = kExportOptions,
                           .parse = parse_export,
                           .run = run_export,
                           .help = kExportHelp,
                           .choices = format_choices,
                           .operands = Completed::kRecordings};

}  // namespace pyinject::cli
