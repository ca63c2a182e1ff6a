#include "cli/command_line.hpp"

#include "base/text.hpp"
#include "cli/argument_splitter.hpp"
#include "cli/did_you_mean.hpp"
#include "cli/function_calls.hpp"
#include "cli/repeat_option.hpp"
#include "cli/verb_options.hpp"
#include "cli/wrapped_verbs.hpp"

#include <boost/program_options.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <string_view>
#include <utility>

namespace pyinject::cli {

namespace {

namespace options = boost::program_options;
using session::kUsage;

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

void take_reports(const options::variables_map& values, CommandLine& line) {
  if (values.count("deactivate-timeout") != 0) {
    line.deactivation_deadline = parse_seconds(values["deactivate-timeout"].as<std::string>());
  }
  if (values.count("stats") != 0) {
    line.report.stats = values["stats"].as<std::string>();
  }
  if (values.count("log-format") != 0) {
    const auto& format = values["log-format"].as<std::string>();
    if (format != "text" && format != "json") {
      throw CommandLineError{fmt::format("--log-format {}: text or json", base::printable(format)),
                             kUsage};
    }
    line.report.json = format == "json";
  }
}

void take_common(const options::variables_map& values, CommandLine& line) {
  line.help = values.count("help") != 0;
  if (values.count("quiet") != 0) {
    line.verbosity = Verbosity::kQuiet;
  }
  if (values.count("verbose") != 0) {
    line.verbosity = Verbosity::kVerbose;
  }
  if (values.count("pid") != 0) {
    for (const auto& list : values["pid"].as<std::vector<std::string>>()) {
      const auto pids = parse_pids(list);
      line.pids.insert(line.pids.end(), pids.begin(), pids.end());
    }
  }
  line.json = values.count("json") != 0;
  take_reports(values, line);
  if (values.count("strict") != 0 && values.count("lenient") != 0) {
    throw CommandLineError{"--strict and --lenient exclude each other", kUsage};
  }
  line.strict = values.count("lenient") == 0;
}

void take_scope(const options::variables_map& values, session::RecordOptions& record) {
  auto& scope = record.scope;
  if (values.count("uid") != 0) {
    const auto& name = values["uid"].as<std::string>();
    scope.user = session::user_by_name(name);
    if (!scope.user) {
      throw CommandLineError{fmt::format("-u {}: there is no such user", base::printable(name)),
                             kUsage};
    }
  }
  if (values.count("comm") != 0) {
    scope.command = values["comm"].as<std::string>();
    if (scope.command.empty()) {
      throw CommandLineError{"--comm: a pattern, as in --comm 'gunicorn*'", kUsage};
    }
  }
  if (values.count("cgroup") != 0) {
    std::string_view path = values["cgroup"].as<std::string>();
    if (path.find(',') != std::string_view::npos) {
      throw CommandLineError{"-G: one control group, for all events", kUsage};
    }
    path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
    path = path.substr(0, path.find_last_not_of('/') + 1);
    scope.cgroup = path;
  }
}

void take_record(const options::variables_map& values, SplitArguments split, CommandLine& line) {
  auto& record = line.record;
  take_scope(values, record);
  record.all = values.count("all-cpus") != 0 || record.scope.narrow();
  if (record.all && !line.pids.empty()) {
    throw CommandLineError{"-p cannot be combined with -a, -u, --comm or -G", kUsage};
  }
  record.children = values.count("children") != 0;
  if (record.children && line.pids.empty()) {
    throw CommandLineError{"--children is for -p: the others have them anyway", kUsage};
  }
  if (split.separator && split.command.empty()) {
    throw CommandLineError{"no command after '--'", kUsage};
  }
  record.launch = !record.all && line.pids.empty();
  if (record.launch && split.command.empty()) {
    throw CommandLineError{
        "no target: name a running Python process with -p PID, all with -a, those of -u, --comm or "
        "-G, or a command to be launched",
        kUsage};
  }
  record.pids = line.pids;
  record.strict = record.all ? values.count("strict") != 0 : line.strict;
  if (values.count("perf") != 0) {
    record.perf.option = values["perf"].as<std::string>();
  }
  record.backfill = values.count("no-backfill") == 0;
  record.lines = values.count("lines") != 0;
  record.keep_raw = values.count("keep-raw") != 0;
  record.deactivation_deadline = line.deactivation_deadline;
  record.perf_options = std::move(split.perf);
  record.command = std::move(split.command);
}

void take_engine(const options::variables_map& values, session::RecordOptions& record) {
  constexpr auto kEngines = std::to_array<std::pair<std::string_view, session::EngineChoice>>(
      {{"trampoline", session::EngineChoice::kTrampoline},
       {"bpf", session::EngineChoice::kBpf},
       {"auto", session::EngineChoice::kAuto}});
  if (values.count("engine") != 0) {
    const auto& name = values["engine"].as<std::string>();
    const auto* const found =
        std::ranges::find(kEngines, std::string_view{name},
                          &std::pair<std::string_view, session::EngineChoice>::first);
    if (found == kEngines.end()) {
      throw CommandLineError{
          fmt::format("--engine {}: trampoline, bpf or auto", base::printable(name)), kUsage};
    }
    record.engine = found->second;
  }
  record.gil = values.count("gil") != 0;
  record.tasks = values.count("tasks") != 0;
  record.off_cpu = values.count("off-cpu") != 0;
  if ((record.gil || record.tasks) && record.engine == session::EngineChoice::kTrampoline) {
    if (values.count("engine") != 0) {
      throw CommandLineError{
          fmt::format("--{} needs --engine bpf: the trampoline knows nothing of it",
                      record.gil ? "gil" : "tasks"),
          kUsage};
    }
    record.engine = session::EngineChoice::kBpf;
  }
}

void take_repeat(const options::variables_map& values, CommandLine& line) {
  std::optional<std::string> keep;
  if (values.count("keep") != 0) {
    keep = values["keep"].as<std::string>();
  }
  if (values.count("repeat") != 0) {
    line.repeat = parse_repeat(values["repeat"].as<std::string>(), keep, line.record);
  } else if (keep) {
    throw CommandLineError{"--keep is for --repeat", kUsage};
  }
}

void take_weave(const options::variables_map& values, const SplitArguments& split,
                CommandLine& line) {
  if (split.command.size() != 1) {
    throw CommandLineError{"weave takes one file: perf-pyinject weave perf.data", kUsage};
  }
  line.input = split.command.front();
  line.output = values.count("output") == 0 ? line.input : values["output"].as<std::string>();
  if (values.count("perf") != 0) {
    line.record.perf.option = values["perf"].as<std::string>();
  }
}

void take_join(const options::variables_map& values, const SplitArguments& split,
               CommandLine& line) {
  const auto number =
      split.command.size() == 1 ? base::parse_number<pid_t>(split.command.front()) : std::nullopt;
  if (number.value_or(0) <= 0) {
    throw CommandLineError{"join takes the process of a perf record: perf-pyinject join PID",
                           kUsage};
  }
  line.pids = {base::Pid{*number}};
  if (values.count("perf") != 0) {
    line.record.perf.option = values["perf"].as<std::string>();
  }
  line.record.lines = values.count("lines") != 0;
  line.record.keep_raw = values.count("keep-raw") != 0;
  line.record.gil = values.count("gil") != 0;
  line.record.tasks = values.count("tasks") != 0;
}

// "record, trace or status", with all of them.
std::string list_verbs() {
  const auto names = verb_names();
  return fmt::format("{} or {}", fmt::join(names.first(names.size() - 1), ", "), names.back());
}

// For somebody who has typed WORD as a verb.
std::string hint(std::string_view word) {
  if (is_verb_of_perf(word)) {
    return fmt::format("run perf {}; the verbs here are {}", word, list_verbs());
  }
  const auto meant = did_you_mean(word, verb_names());
  return meant ? fmt::format("did you mean {}?", *meant) : list_verbs();
}

void take_verb(const VerbOptions& known, std::span<const std::string> words, CommandLine& line) {
  line.verb = known.verb;
  auto split = split_arguments(words, known.own, line.verb == Verb::kRecord);
  const bool of_one_word = line.verb == Verb::kWeave || line.verb == Verb::kJoin;
  if (of_one_word && split.command.size() > 1) {  // options behind it
    const std::span<const std::string> rest{split.command};
    auto behind = split_arguments(rest.subspan(1), known.own, false);
    split.own.insert(split.own.end(), behind.own.begin(), behind.own.end());
    split.command.resize(1);
    split.command.insert(split.command.end(), behind.command.begin(), behind.command.end());
  }
  const auto values = store_own(known.own, split.own);
  take_common(values, line);
  if (line.help) {
    return;
  }
  if (line.verb == Verb::kRecord) {
    take_record(values, std::move(split), line);
    take_engine(values, line.record);
    line.functions = values.count("functions") != 0;
    if (line.functions) {
      check_functions(line, values);
    }
    take_repeat(values, line);
  } else if (line.verb == Verb::kWeave) {
    take_weave(values, split, line);
  } else if (line.verb == Verb::kJoin) {
    take_join(values, split, line);
  } else if (!split.command.empty()) {
    const auto& word = split.command.front();
    const bool pid = line.pids.empty() && base::parse_number<pid_t>(word).has_value();
    throw CommandLineError{
        fmt::format("{}: unexpected argument '{}'{}", known.name, base::printable(word),
                    pid ? fmt::format("; did you mean -p {}?", word) : ""),
        kUsage};
  } else if (line.verb == Verb::kFunctions) {
    line.input = values.count("input") == 0 ? "perf.data" : values["input"].as<std::string>();
    line.timeline = values.count("timeline") != 0;
  } else if (values.count("abandoned") != 0) {
    line.abandoned = true;
    if (!line.pids.empty()) {
      throw CommandLineError{"--abandoned finds its targets itself: leave out -p", kUsage};
    }
  } else if (line.pids.empty() && line.verb != Verb::kStatus) {
    throw CommandLineError{fmt::format("{} needs a target: -p PID", known.name), kUsage};
  }
}

}  // namespace

std::vector<base::Pid> parse_pids(std::string_view list) {
  std::vector<base::Pid> pids;
  for (const auto piece : base::split(list, ',')) {
    const auto number = base::parse_number<pid_t>(piece);
    if (!number || *number <= 0) {
      throw CommandLineError{
          fmt::format("invalid pid '{}' in -p {} (expected for example -p 12,345)",
                      base::printable(piece), base::printable(list)),
          kUsage};
    }
    pids.emplace_back(*number);
  }
  return pids;
}

CommandLine parse_command_line(const std::vector<std::string>& arguments,
                               const std::optional<std::string>& perf) {
  CommandLine line;
  line.record.perf.environment = perf;
  const std::span<const std::string> words{arguments};
  if (words.empty() || words.front().starts_with('-')) {
    const auto split = split_arguments(words, global_options(), false);
    const auto values = store_own(global_options(), split.own);
    line.help = values.count("help") != 0;
    line.version = values.count("version") != 0;
    if (!line.help && !line.version) {
      throw CommandLineError{fmt::format("no verb: {}", list_verbs()), kUsage};
    }
    return line;
  }
  if (is_wrapped_verb(words.front())) {
    auto wrapped = parse_wrapped_verb(words);
    line.verb = Verb::kWrapped;
    line.help = wrapped.help;
    line.wrapped = std::move(wrapped.options);
    line.wrapped.perf.environment = perf;
    return line;
  }
  const auto* const known = find_verb(words.front());
  if (known == nullptr) {
    throw CommandLineError{
        fmt::format("unknown verb '{}': {}", base::printable(words.front()), hint(words.front())),
        kUsage};
  }
  take_verb(*known, words.subspan(1), line);
  return line;
}

}  // namespace pyinject::cli
