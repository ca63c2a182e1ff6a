#include "cli/verb_options.hpp"

#include "base/text.hpp"

#include <boost/program_options.hpp>
#include <fmt/format.h>

#include <array>
#include <charconv>

namespace pyinject::cli {

namespace {

namespace options = boost::program_options;
using perf::RecordOption;
using session::kUsage;

constexpr auto kGlobal = std::to_array<RecordOption>({
    {"help", 'h', kFlag},
    {"version", 0, kFlag},
});

constexpr auto kFlagOptions = std::to_array<FlagOption>({{"lines", &weave::WeaveFlags::lines},
                                                         {"keep-raw", &weave::WeaveFlags::keep_raw},
                                                         {"gil", &weave::WeaveFlags::gil},
                                                         {"tasks", &weave::WeaveFlags::tasks},
                                                         {"off-cpu", &weave::WeaveFlags::off_cpu}});

// "5", "0.5".
std::chrono::nanoseconds parse_seconds(const std::string& text) {
  double seconds = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, seconds, std::chars_format::fixed);
  if (error != std::errc{} || rest != end || !(seconds > 0 && seconds <= 3600)) {
    throw CommandLineError{
        fmt::format("--deactivate-timeout {}: seconds, more than 0 and 3600 at most",
                    base::printable(text)),
        kUsage};
  }
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>{seconds});
}

void take_reports(const ParsedWords& parsed, ReportOptions& report) {
  report.stats = parsed.value("stats");
  if (const auto format = parsed.value("log-format")) {
    if (*format != "text" && *format != "json") {
      throw CommandLineError{fmt::format("--log-format {}: text or json", base::printable(*format)),
                             kUsage};
    }
    report.json = *format == "json";
  }
}

void take_common(ParsedWords& parsed, CommandLine& line) {
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
  if (const auto seconds = parsed.value("deactivate-timeout")) {
    parsed.deactivation_deadline = parse_seconds(*seconds);
  }
  take_reports(parsed, line.report);
  if (parsed.has("strict") && parsed.has("lenient")) {
    throw CommandLineError{"--strict and --lenient exclude each other", kUsage};
  }
  parsed.strict = !parsed.has("lenient");
  for (const auto& option : kFlagOptions) {
    parsed.flags.*option.flag = parsed.has(option.name);
  }
}

void refuse_operands(const VerbSpec& verb, const ParsedWords& parsed) {
  if (parsed.split.command.empty()) {
    return;
  }
  const auto& word = parsed.split.command.front();
  const bool pid = parsed.pids.empty() && base::parse_number<pid_t>(word).has_value();
  throw CommandLineError{
      fmt::format("{}: unexpected argument '{}'{}", verb.name, base::printable(word),
                  pid ? fmt::format("; did you mean -p {}?", word) : ""),
      kUsage};
}

// One operand may have options behind it.
SplitArguments split_words(const VerbSpec& verb, const VerbArguments& arguments,
                           Operands operands) {
  auto split = split_arguments(arguments.words.subspan(1), verb.options,
                               operands == Operands::kPerfOptionsAndCommand);
  if (operands == Operands::kOne && split.command.size() > 1) {
    const std::span<const std::string> rest{split.command};
    auto behind = split_arguments(rest.subspan(1), verb.options, false);
    split.own.insert(split.own.end(), behind.own.begin(), behind.own.end());
    split.command.resize(1);
    split.command.insert(split.command.end(), behind.command.begin(), behind.command.end());
  }
  return split;
}

}  // namespace

std::span<const FlagOption> flag_options() { return kFlagOptions; }

std::span<const RecordOption> global_options() { return kGlobal; }

std::optional<std::string> ParsedWords::value(const char* option) const {
  return has(option) ? std::optional{values[option].as<std::string>()} : std::nullopt;
}

ParsedWords parse_words(const VerbSpec& verb, const VerbArguments& arguments, Operands operands,
                        CommandLine& line) {
  ParsedWords parsed;
  parsed.split = split_words(verb, arguments, operands);
  parsed.values = store_own(verb.options, parsed.split.own);
  take_common(parsed, line);
  parsed.perf = {.option = parsed.value("perf"), .environment = arguments.perf};
  if (!line.help && operands == Operands::kNone) {
    refuse_operands(verb, parsed);
  }
  return parsed;
}

void require_pids(const VerbSpec& verb, const ParsedWords& parsed) {
  if (parsed.pids.empty()) {
    throw CommandLineError{fmt::format("{} needs a target: -p PID", verb.name), kUsage};
  }
}

options::variables_map store_own(std::span<const RecordOption> own,
                                 const std::vector<std::string>& words) {
  options::options_description description;
  for (const auto& option : own) {
    const std::string name{option.long_name};
    if (name == "pid") {
      description.add_options()(name.c_str(),
                                options::value<std::vector<std::string>>()->composing());
    } else if (option.argument == kValue) {
      description.add_options()(name.c_str(), options::value<std::string>());
    } else {
      // As often as one likes, like perf.
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
