#include "cli/command_line.hpp"

#include "base/text.hpp"
#include "cli/argument_splitter.hpp"
#include "cli/did_you_mean.hpp"
#include "cli/verb_options.hpp"
#include "cli/verbs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace pyinject::cli {

namespace {

using record::kUsage;

// Commands of stock perf that this tool lacks: command-list.txt of tools/perf, Linux 7.2.
bool is_verb_of_perf(std::string_view name) {
  static constexpr auto kNames = std::to_array<std::string_view>(
      {"annotate", "archive", "bench",  "buildid-cache", "buildid-list", "c2c",
       "check",    "config",  "daemon", "data",          "diff",         "evlist",
       "ftrace",   "inject",  "iostat", "kallsyms",      "kmem",         "kvm",
       "kwork",    "list",    "lock",   "mem",           "probe",        "sched",
       "script",   "stat",    "test",   "timechart",     "trace",        "version"});
  return std::ranges::find(kNames, name) != kNames.end();
}

// "record, top or status", with all verbs.
std::string list_verbs() {
  const auto names = verb_names();
  return fmt::format("{} or {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

// Verbs of other tools, and words for what this one does.
std::optional<std::string_view> verb_for(std::string_view word) {
  static constexpr auto kWords =
      std::to_array<std::pair<std::string_view, std::string_view>>({{"attach", "record"},
                                                                    {"profile", "record"},
                                                                    {"run", "why"},
                                                                    {"explain", "why"},
                                                                    {"diagnose", "why"},
                                                                    {"live", "top"},
                                                                    {"stack", "dump"},
                                                                    {"stacks", "dump"},
                                                                    {"backtrace", "dump"},
                                                                    {"bt", "dump"},
                                                                    {"ps", "status"},
                                                                    {"svg", "flamegraph"},
                                                                    {"html", "flamegraph"},
                                                                    {"heatmap", "flamegraph"},
                                                                    {"pprof", "export"},
                                                                    {"collapse", "export"}});
  const auto* const found =
      std::ranges::find(kWords, word, &std::pair<std::string_view, std::string_view>::first);
  return found == kWords.end() ? std::nullopt : std::optional{found->second};
}

// For a user who has typed WORD as a verb.
std::string hint(std::string_view word) {
  if (const auto meant = verb_for(word)) {
    return fmt::format("did you mean {}?", *meant);
  }
  if (word == "perf-pyinject" || word == "pyinject") {
    return "leave it out: it is the name of this program; use " + list_verbs();
  }
  if (is_verb_of_perf(word)) {
    return fmt::format("run perf {} itself; the verbs of perf-pyinject are {}", word, list_verbs());
  }
  if (is_pid_list(word)) {
    return fmt::format("did you mean why {}?", word);
  }
  const auto names = verb_names();
  const auto meant = did_you_mean(word, names);
  return meant ? fmt::format("did you mean {}?", *meant) : "use " + list_verbs();
}

// perf-pyinject help [VERB]: WORDS are those behind `help`.
void parse_help(std::span<const std::string> words, CommandLine& line) {
  line.help = true;
  if (words.empty() || words.front() == "help") {
    return;
  }
  line.verb = find_verb(words.front());
  if (line.verb == nullptr) {
    throw CommandLineError{fmt::format("help: unknown verb '{}': {}",
                                       base::printable(words.front()), hint(words.front())),
                           kUsage};
  }
}

// An option of verbs that stands before any.
void refuse_option_before_verb(std::span<const std::string> words) {
  const auto& word = words.front();
  const auto is_option = [&word](const Option& option) {
    const bool is_short =
        option.short_name() != '\0' && word.size() > 1 && word[1] == option.short_name();
    return is_short || "--" + std::string{option.long_name()} == word.substr(0, word.find('='));
  };
  const auto options = options_of(why_verb);
  if (std::ranges::none_of(global_options(), is_option) &&
      std::ranges::any_of(options, is_option)) {
    throw CommandLineError{
        fmt::format("{}: the verb comes first, as in: perf-pyinject why {}", base::printable(word),
                    base::printable(fmt::format("{}", fmt::join(words, " ")))),
        kUsage};
  }
}

}  // namespace

bool is_pid_list(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789,") == std::string_view::npos;
}

std::vector<base::Pid> parse_pids(std::string_view list, std::string_view option) {
  std::vector<base::Pid> pids;
  for (const auto piece : base::split(list, ',')) {
    const auto number = base::parse_number<pid_t>(piece);
    if (!number || *number <= 0) {
      throw CommandLineError{
          fmt::format("invalid {0} '{1}' in {2} {3} (expected for example {2} 12,345){4}",
                      option == "-p" ? "pid" : "thread", base::printable(piece), option,
                      base::printable(list),
                      option == "-p" ? "; perf-pyinject status lists the pids" : ""),
          kUsage};
    }
    pids.emplace_back(*number);
  }
  return pids;
}

CommandLine parse_command_line(const std::vector<std::string>& arguments,
                               const std::optional<std::string>& perf,
                               const DefaultEngineSearch& default_engine) {
  CommandLine line;
  const std::span<const std::string> words{arguments};
  if (words.empty()) {
    line.verb = &overview_verb;
    return line;
  }
  if (words.front().starts_with('-')) {
    refuse_option_before_verb(words);
    const auto split = split_arguments(words, global_options(), false);
    const auto values = store_own(global_options(), split.own);
    line.help = values.count("help") != 0;
    line.version = values.count("version") != 0;
    if (!line.help && !line.version) {
      throw CommandLineError{fmt::format("no verb: use {}", list_verbs()), kUsage};
    }
    return line;
  }
  if (words.front() == "help") {
    parse_help(words.subspan(1), line);
    return line;
  }
  line.verb = find_verb(words.front());
  if (line.verb == nullptr) {
    throw CommandLineError{
        fmt::format("unknown verb '{}': {}", base::printable(words.front()), hint(words.front())),
        kUsage};
  }
  line.verb->parse({.words = words, .perf = perf, .default_engine = default_engine}, line);
  return line;
}

}  // namespace pyinject::cli
