#include "base/file.hpp"
#include "base/format.hpp"
#include "base/text.hpp"
#include "cli/command_line.hpp"
#include "cli/function_hint.hpp"
#include "cli/pager.hpp"
#include "cli/profile_source.hpp"
#include "cli/reporter.hpp"
#include "cli/source_file.hpp"
#include "cli/terminal.hpp"
#include "cli/verb_options.hpp"
#include "cli/verbs.hpp"
#include "report/text_parts.hpp"
#include "report/views.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

namespace pyinject::cli {

namespace {

using record::kUsage;

constexpr auto kReportOptions = std::to_array<Option>({
    rows::kInput,
    {"--view V",
     "functions (default); lines, annotate: the source (record --lines); tree: who calls whom; "
     "waits: for what (record --off-cpu); events, side by side; threads, processes, tasks (record "
     "--tasks) and greenlets, gil (record --gil); imports: which modules",
     Completed::kWord, "which table",
     "functions lines annotate tree waits events threads processes tasks gil imports"},
    {"--diff OLD", "what has changed since the recording OLD", Completed::kRecordings},
    {"--by WHAT",
     "functions with rows: python (default), native (only C and kernel functions), mixed (all)",
     Completed::kWord, "which functions have rows", "python native mixed"},
    {"--mine DIR", "charge the time of libraries to the innermost function with a file below DIR",
     Completed::kDirectories},
    {"--sort KEY", "self (default) or total", Completed::kWord, "sort by this time", "self total"},
    {"--limit N",
     "at most N rows in each table; tree: at most N callees of a function; annotate: N functions "
     "(default: 3)"},
    {"--percent P", "tree: fold paths with less than P percent (default: 1)", Completed::kUnknown,
     "fold paths with less than P percent"},
    under("only samples", rows::kPid.with("of these processes")),
    {"--tid TID", "of this thread"},
    {"--comm NAME", "of threads with this name"},
    {"--task NAME", "of this asyncio task or greenlet: '[greenlet] serve'"},
    {"--function F", "with the function F in the stack; annotate: show F"},
    {"--time RANGE", "in this time, in seconds from the first sample: 2-5, 10-, -3"},
    under("output (long text goes through $PERF_PAGER or $PAGER on a terminal)",
          {"--json", "for programs: docs/report.md describes the fields"}),
    {"--csv", "for programs, comma-separated"},
});

constexpr std::string_view kReportHelp =
    R"(usage: perf-pyinject report [OPTION...] [FILE...]

Prints tables of the Python functions in a recording. FILE (default: perf.data)
was recorded by this tool or by perf; several are taken together. The time of C
and kernel functions counts for the Python function that called them. CPU events
are counted in samples, waits (record --off-cpu) and system calls (--what io) in
seconds; they have separate tables.

{options}

columns: self: the function is the innermost Python function (python: it was
interpreted itself; native, kernel: in what it called); total: it is anywhere in
the stack

exit status: 0; 125 the file cannot be read, or has no samples; 129 usage

examples:
  perf-pyinject report --limit 20
  perf-pyinject report --view tree --mine /srv/app --time 10-20
  perf-pyinject report --diff old.data 'web.data.*'
)";

template <typename Value, std::size_t kSize>
Value choose(const ParsedWords& parsed, const char* option,
             const std::array<std::pair<std::string_view, Value>, kSize>& choices) {
  const auto text = parsed.value(option);
  if (!text) {
    return choices.front().second;
  }
  std::vector<std::string_view> names;
  for (const auto& [name, value] : choices) {
    if (name == *text) {
      return value;
    }
    names.push_back(name);
  }
  throw CommandLineError{
      fmt::format("--{} {}: expected one of: {}{}", option, base::printable(*text),
                  fmt::join(names, ", "), meant_text(*text, names)),
      kUsage};
}

std::optional<double> parse_second(std::string_view text) {
  if (text.empty()) {
    return std::nullopt;
  }
  double number = 0;
  const auto [rest, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc{} || rest != text.data() + text.size() || number < 0) {
    throw CommandLineError{
        fmt::format("--time: expected a number of seconds, not '{}'", base::printable(text)),
        kUsage};
  }
  return number;
}

void parse_time(const std::string& range, report::ViewOptions& options) {
  const auto dash = range.find('-');
  if (dash == std::string::npos || range.size() == 1) {
    throw CommandLineError{
        fmt::format("--time {}: expected a range such as 2-5, 10- or -3", base::printable(range)),
        kUsage};
  }
  options.from = parse_second(std::string_view{range}.substr(0, dash));
  options.until = parse_second(std::string_view{range}.substr(dash + 1));
}

void parse_filters(const ParsedWords& parsed, report::ViewOptions& options) {
  for (const auto pid : parsed.pids) {
    options.pids.push_back(static_cast<std::uint32_t>(pid.value()));
  }
  if (const auto tid = parsed.value("tid")) {
    constexpr int kMostTid = 1 << 22;  // linux, PID_MAX_LIMIT
    options.tids.push_back(static_cast<std::uint32_t>(parse_whole(*tid, "--tid", kMostTid)));
  }
  options.comm = parsed.value("comm").value_or("");
  options.task = parsed.value("task").value_or("");
  options.function = parsed.value("function").value_or("");
  if (const auto range = parsed.value("time")) {
    parse_time(*range, options);
  }
}

double parse_percent(const std::string& text) {
  constexpr double kAll = 100;
  double number = 0;
  const auto* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc{} || rest != end || number < 0 || number > kAll) {
    throw CommandLineError{fmt::format("--percent {}: expected 0 to 100", base::printable(text)),
                           kUsage};
  }
  return number;
}

// Options that the view would ignore.
void refuse_useless(const ParsedWords& parsed, report::View view) {
  using report::View;
  if (parsed.has("percent") && view != View::kTree) {
    throw CommandLineError{"--percent is for --view tree", kUsage};
  }
  if (parsed.has("diff") && view != View::kFunctions && view != View::kLines &&
      view != View::kImports) {
    throw CommandLineError{"--diff compares functions, lines or imports", kUsage};
  }
  if (parsed.has("by") && parsed.value("by") != "python" &&
      (view == View::kAnnotate || view == View::kImports || view == View::kTasks ||
       view == View::kThreads || view == View::kProcesses)) {
    throw CommandLineError{fmt::format("--by is for functions: not for --view {}", name_of(view)),
                           kUsage};
  }
}

void parse_report(const VerbArguments& arguments, CommandLine& line) {
  using report::By;
  using report::View;
  constexpr int kMostTableRows = 1'000'000;
  auto parsed = parse_words(report_verb, arguments, Operands::kOne, line);
  if (line.help) {
    return;
  }
  ReportCommand command{.files = parse_files(parsed), .before = parsed.value("diff")};
  auto& tables = command.tables;
  tables.view = choose<View, 11>(parsed, "view",
                                 {{{"functions", View::kFunctions},
                                   {"lines", View::kLines},
                                   {"threads", View::kThreads},
                                   {"processes", View::kProcesses},
                                   {"tasks", View::kTasks},
                                   {"gil", View::kGil},
                                   {"tree", View::kTree},
                                   {"annotate", View::kAnnotate},
                                   {"waits", View::kWaits},
                                   {"events", View::kEvents},
                                   {"imports", View::kImports}}});
  tables.by = choose<By, 3>(
      parsed, "by", {{{"python", By::kPython}, {"native", By::kNative}, {"mixed", By::kMixed}}});
  tables.by_total = parsed.has("sort")
                        ? choose<bool, 2>(parsed, "sort", {{{"self", false}, {"total", true}}})
                        : tables.view == View::kImports;
  tables.mine = parsed.value("mine").value_or("");
  parse_filters(parsed, tables);
  if (const auto limit = parsed.value("limit")) {
    command.most = static_cast<std::size_t>(parse_whole(*limit, "--limit", kMostTableRows));
  }
  if (const auto percent = parsed.value("percent")) {
    command.least = parse_percent(*percent);
  }
  refuse_useless(parsed, tables.view);
  command.json = parsed.has("json");
  command.csv = parsed.has("csv");
  if (command.json && command.csv) {
    throw CommandLineError{"give either --json or --csv", kUsage};
  }
  line.options = std::move(command);
}

int run_report(const CommandLine& line, Reporter& reporter, const Terminal& terminal) {
  const auto& command = std::get<ReportCommand>(line.options);
  const auto profile = read_recordings(command.files, reporter, is_live(line, terminal));
  if (!profile) {
    return record::kFailure;
  }
  using report::Format;
  const report::ShowOptions options{.view = command.tables,
                                    .text = {.most = command.most, .width = output_width()},
                                    .format = command.json  ? Format::kJson
                                              : command.csv ? Format::kCsv
                                                            : Format::kText,
                                    .least = command.least,
                                    .read_source = source_reader(command.files.front())};
  const auto before = command.before
                          ? read_recordings({*command.before}, reporter, is_live(line, terminal))
                          : std::nullopt;
  if (command.before && !before) {
    return record::kFailure;
  }
  const auto shown = before ? report::show_difference(*before, *profile, options)
                            : report::show(*profile, options);
  const auto name = name_of_recordings(command.files);
  if (const auto* const nothing = std::get_if<report::NothingToShow>(&shown)) {
    const auto hint = command.tables.function.empty()
                          ? std::string{}
                          : function_hint(*profile, command.tables.function);
    reporter.logger().error("{}: {}", name, hint.empty() ? nothing->why : hint);
    return record::kFailure;
  }
  if (command.tables.view == report::View::kLines && !report::has_lines(*profile)) {
    reporter.logger().info(
        "{} has no lines: each row is a function; record with --engine auto --lines", name);
  }
  const auto& text = std::get<std::string>(shown);
  if (command.json || command.csv) {
    base::write_all(STDOUT_FILENO, text, "standard output");
  } else {
    show_report(text, look_at_output());
  }
  return 0;
}

}  // namespace

const VerbSpec report_verb{.name = "report",
                           .summary = "print tables of the Python functions in a recording",
                           .options = kReportOptions,
                           .parse = parse_report,
                           .run = run_report,
                           .help = kReportHelp,
                           .operands = Completed::kRecordings};

}  // namespace pyinject::cli
