#include "cli/verb_options.hpp"

#include "base/text.hpp"
#include "cli/did_you_mean.hpp"
#include "procfs/executable.hpp"

#include <boost/program_options.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

namespace pyinject::cli {

namespace {

namespace options = boost::program_options;
using record::kUsage;

constexpr Option kHelp = not_in_help({"-h, --help", "print the help text"});
constexpr auto kGlobal = std::to_array<Option>(
    {kHelp, {"--version", "print the version and the engines that are built in"}});
constexpr auto kOfAllVerbs =
    std::to_array<Option>({rows::kLogFormat, rows::kQuiet, rows::kVerbose, kHelp});

// "5", "0.5".
std::chrono::nanoseconds parse_seconds(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc{} || rest != end || !(number > 0 && number <= 3600)) {
    throw CommandLineError{
        fmt::format("--deactivate-timeout {}: expected seconds, more than 0 and at most 3600",
                    base::printable(text)),
        kUsage};
  }
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>{number});
}

void parse_report_options(const ParsedWords& parsed, ReportOptions& report) {
  report.stats = parsed.value("stats");
  if (const auto format = parsed.value("log-format")) {
    if (*format != "text" && *format != "json") {
      throw CommandLineError{
          fmt::format("--log-format {}: expected text or json", base::printable(*format)), kUsage};
    }
    report.json = *format == "json";
  }
}

void parse_common_options(std::span<const Option> own, ParsedWords& parsed, CommandLine& line) {
  line.help = parsed.has("help");
  if (parsed.has("quiet")) {
    line.verbosity = Verbosity::kQuiet;
  }
  if (parsed.has("verbose")) {
    line.verbosity = Verbosity::kVerbose;
  }
  if (parsed.has("pid")) {
    for (const auto& list : parsed.values["pid"].as<std::vector<std::string>>()) {
      const auto pids = parse_pids(list);
      parsed.pids.insert(parsed.pids.end(), pids.begin(), pids.end());
    }
  }
  if (const auto text = parsed.value("deactivate-timeout")) {
    parsed.deactivation_deadline = parse_seconds(*text);
  }
  parse_report_options(parsed, line.report);
  if (parsed.has("strict") && parsed.has("lenient")) {
    throw CommandLineError{"give either --strict or --lenient", kUsage};
  }
  parsed.strict = !parsed.has("lenient");
  for (const auto& option : own) {
    if (option.flag != nullptr) {
      parsed.flags.*option.flag = parsed.has(std::string{option.long_name()}.c_str());
    }
  }
}

// As somebody types it who knows `record`.
bool is_sleep(std::span<const std::string> words) {
  return words.size() == 2 && words.front() == "sleep";
}

// What WORDS are meant for, of somebody who types them for `record`; empty: no idea.
std::string meant_by(std::span<const std::string> words, const VerbSpec& verb) {
  const bool timed = std::ranges::find(verb.options, rows::kDuration.long_name(),
                                       &Option::long_name) != verb.options.end();
  if (timed && is_sleep(words.last(std::min<std::size_t>(words.size(), 2)))) {
    return fmt::format("; did you mean -d {}?", base::printable(words.back()));
  }
  return {};
}

// Removes the operands that are targets: pids, and for verbs with --comm one name.
void take_target_words(const VerbSpec& verb, ParsedWords& parsed) {
  auto& words = parsed.split.command;
  const bool named = std::ranges::find(verb.options, rows::kComm.long_name(), &Option::long_name) !=
                     verb.options.end();
  if (verb.operands != Completed::kPids || parsed.split.separator || is_sleep(words)) {
    return;
  }
  std::erase_if(words, [&](const std::string& word) {
    if (is_pid_list(word)) {
      const auto pids = parse_pids(word);
      parsed.pids.insert(parsed.pids.end(), pids.begin(), pids.end());
      return true;
    }
    return named && !word.empty() && std::exchange(parsed.name, word).empty();
  });
}

void refuse_operands(const VerbSpec& verb, const ParsedWords& parsed) {
  if (parsed.split.command.empty()) {
    return;
  }
  throw CommandLineError{fmt::format("{}: unexpected argument '{}'{}", verb.name,
                                     base::printable(parsed.split.command.front()),
                                     meant_by(parsed.split.command, verb)),
                         kUsage};
}

void require_needed(std::span<const Option> own, const ParsedWords& parsed) {
  for (const auto& option : own) {
    if (option.needs.empty() || !parsed.has(std::string{option.long_name()}.c_str()) ||
        parsed.has(std::string{option.needs}.c_str())) {
      continue;
    }
    const auto needed = std::ranges::find(own, option.needs, &Option::long_name);
    throw CommandLineError{fmt::format("--{} needs {}", option.long_name(),
                                       needed == own.end() ? option.needs : needed->term),
                           kUsage};
  }
}

// Options may follow operands, but not a command.
SplitArguments split_words(const VerbSpec& verb, std::span<const Option> own,
                           const VerbArguments& arguments, Operands operands) {
  const bool command = operands == Operands::kPerfOptionsAndCommand;
  auto split = split_arguments(arguments.words.subspan(1), own, command);
  if (command && !split.separator && !split.command.empty() && is_pid_list(split.command.front())) {
    auto behind = split_arguments(std::span{split.command}.subspan(1), own, true);
    behind.own.insert(behind.own.begin(), split.own.begin(), split.own.end());
    behind.own.push_back("--pid=" + split.command.front());
    behind.perf.insert(behind.perf.begin(), split.perf.begin(), split.perf.end());
    return behind;
  }
  for (std::size_t i = 1; !command && !split.separator && i < split.command.size(); ++i) {
    const auto rest = std::span{split.command}.subspan(i);
    const auto behind = split_arguments(rest, own, false);
    split.own.insert(split.own.end(), behind.own.begin(), behind.own.end());
    split.command.resize(i);
    split.command.insert(split.command.end(), behind.command.begin(), behind.command.end());
    split.separator = behind.separator;
    if (split.separator && operands == Operands::kTargetsOrCommand) {
      refuse_command(behind.command, verb);
    }
  }
  return split;
}

}  // namespace

std::span<const Option> global_options() { return kGlobal; }

std::vector<Option> options_of(const VerbSpec& verb) {
  std::vector<Option> all{verb.options.begin(), verb.options.end()};
  for (const auto& option : kOfAllVerbs) {
    if (std::ranges::find(all, option.long_name(), &Option::long_name) == all.end()) {
      all.push_back(option);
    }
  }
  return all;
}

std::optional<std::string> ParsedWords::value(const char* option) const {
  return has(option) ? std::optional{values[option].as<std::string>()} : std::nullopt;
}

perf::PerfSearch search_recorder(const ParsedWords& parsed) {
  auto search = parsed.perf;
  search.recorder = perf::RecorderChoice::kPerfOrOwn;
  if (const auto recorder = parsed.value("recorder")) {
    if (*recorder != "own" && *recorder != "perf") {
      throw CommandLineError{fmt::format("--recorder {}: expected perf or own", *recorder), kUsage};
    }
    search.recorder = *recorder == "own" ? perf::RecorderChoice::kOwn : perf::RecorderChoice::kPerf;
  }
  search.own = procfs::own_executable();
  return search;
}

ParsedWords parse_words(const VerbSpec& verb, const VerbArguments& arguments, Operands operands,
                        CommandLine& line) {
  ParsedWords parsed;
  const auto own = options_of(verb);
  parsed.split = split_words(verb, own, arguments, operands);
  parsed.values = store_own(own, parsed.split.own);
  parse_common_options(own, parsed, line);
  parsed.perf = {.option = parsed.value("perf"), .environment = arguments.perf};
  parsed.default_engine = arguments.default_engine;
  if (!line.help) {
    require_needed(own, parsed);
    const bool launches = operands == Operands::kTargetsOrCommand && parsed.split.separator;
    if (launches && parsed.split.command.empty()) {
      throw CommandLineError{"no command after '--'", kUsage};
    }
    if (operands == Operands::kTargets || (operands == Operands::kTargetsOrCommand && !launches)) {
      take_target_words(verb, parsed);
      refuse_operands(verb, parsed);
    }
  }
  return parsed;
}

void refuse_command(std::span<const std::string> command, const VerbSpec& verb) {
  throw CommandLineError{
      fmt::format("give either a process or -- COMMAND{}", meant_by(command, verb)), kUsage};
}

int parse_whole(const std::string& text, std::string_view option, int most) {
  const auto number = base::parse_number<int>(text);
  if (!number || *number < 1 || *number > most) {
    throw CommandLineError{
        fmt::format("{} {}: expected 1 to {}", option, base::printable(text), most), kUsage};
  }
  return *number;
}

std::string meant_text(std::string_view word, std::span<const std::string_view> known) {
  const auto meant = did_you_mean(word, known);
  return meant ? fmt::format("; did you mean {}?", *meant) : "";
}

std::string missing_text(const targets::Scope& scope) {
  const bool named = !scope.name.empty() && !scope.user && scope.command.empty() && !scope.cgroup;
  return named            ? fmt::format("is called '{}'", base::printable(scope.name))
         : scope.narrow() ? "is selected"
                          : "is visible";
}

void require_pids(const VerbSpec& verb, const ParsedWords& parsed) {
  if (parsed.pids.empty()) {
    throw CommandLineError{fmt::format("{} needs a target: -p PID", verb.name), kUsage};
  }
}

targets::Scope parse_scope(const ParsedWords& parsed) {
  targets::Scope scope;
  if (const auto name = parsed.value("uid")) {
    scope.user = targets::user_by_name(*name);
    if (!scope.user) {
      throw CommandLineError{fmt::format("-u {}: no such user", base::printable(*name)), kUsage};
    }
  }
  if (const auto pattern = parsed.value("comm")) {
    if (pattern->empty()) {
      throw CommandLineError{"--comm needs a pattern, as in --comm 'gunicorn*'", kUsage};
    }
    scope.command = *pattern;
  }
  scope.name = parsed.name;
  if (const auto cgroup = parsed.value("cgroup")) {
    std::string_view path = *cgroup;
    if (path.find(',') != std::string_view::npos) {
      throw CommandLineError{"-G takes one cgroup, for all events", kUsage};
    }
    path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
    scope.cgroup = path.substr(0, path.find_last_not_of('/') + 1);
  }
  if (!parsed.pids.empty() && (parsed.has("all-cpus") || scope.narrow())) {
    throw CommandLineError{"a PID cannot be combined with a NAME, -a, -u, --comm or -G", kUsage};
  }
  return scope;
}

record::Targets parse_targets(const ParsedWords& parsed, bool others_select_all) {
  auto scope = parse_scope(parsed);
  const bool all = parsed.has("all-cpus") || scope.narrow() || others_select_all;
  if (all && parsed.has("children")) {
    throw CommandLineError{
        "--children is for -p: -a, -u, --comm and -G include child processes anyway", kUsage};
  }
  if (all) {
    return record::System{std::move(scope)};
  }
  if (parsed.pids.empty()) {
    return record::Launched{};
  }
  return parsed.has("children") ? record::Targets{record::Families{parsed.pids}}
                                : record::Processes{parsed.pids};
}

options::variables_map store_own(std::span<const Option> own,
                                 const std::vector<std::string>& words) {
  options::options_description description;
  for (const auto& option : own) {
    const std::string name{option.long_name()};
    if (option.repeats) {
      description.add_options()(name.c_str(),
                                options::value<std::vector<std::string>>()->composing());
    } else if (option.has_value()) {
      description.add_options()(name.c_str(), options::value<std::string>());
    } else {
      // May be repeated, as in perf.
      description.add_options()(name.c_str(),
                                options::value<std::vector<bool>>()->zero_tokens()->composing());
    }
  }
  options::variables_map values;
  try {
    options::store(options::command_line_parser(words)
                       .options(description)
                       .style(options::command_line_style::allow_long |
                              options::command_line_style::long_allow_adjacent)
                       .run(),
                   values);
  } catch (const options::error& error) {
    throw CommandLineError{error.what(), kUsage};
  }
  options::notify(values);
  return values;
}

}  // namespace pyinject::cli
