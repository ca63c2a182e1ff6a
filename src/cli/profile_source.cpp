#include "cli/profile_source.hpp"

#include "base/format.hpp"
#include "base/host_name.hpp"
#include "base/scratch_directory.hpp"
#include "base/text.hpp"
#include "cli/added_recipes.hpp"
#include "cli/command_line.hpp"
#include "cli/console.hpp"
#include "cli/default_engine.hpp"
#include "cli/reading_progress.hpp"
#include "cli/recipes.hpp"
#include "cli/reporter.hpp"
#include "cli/terminal.hpp"
#include "procfs/cmdline.hpp"
#include "procfs/own_rights.hpp"
#include "procfs/status.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/python/injector.hpp"
#include "pyinject/record/record_session.hpp"
#include "pyinject/report/reader.hpp"
#include "pyinject/targets/scope.hpp"
#include "pyinject/targets/stop_signals.hpp"
#include "pyinject/targets/target_selection.hpp"
#include "recorder/options.hpp"
#include "report/clock.hpp"
#include "report/merge.hpp"
#include "targets/target_map.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <glob.h>
#include <unistd.h>

namespace pyinject::cli {

namespace {

constexpr int kRecordedSeconds = 10;
constexpr int kMostRecordedSeconds = 3600;
constexpr int kRecordedFrequency = 199;  // no multiple of the usual timers
constexpr int kMostRecordedFrequency = 10'000;
constexpr std::string_view kDefaultFile = "perf.data";

// Otherwise perf may have capabilities that this program lacks (docs/rights.md). This program
// starts to record sooner than perf.
bool may_open_all_events() {
  const auto own = procfs::read_status(base::Pid{::getpid()});
  return own && procfs::holds(own->effective_capabilities, procfs::Capability::kPerfmon);
}

record::RecordPlan recording_of(const ParsedWords& parsed, record::Targets targets) {
  record::RecordPlan record;
  record.targets = std::move(targets);
  record.strict = !record.whole_system();
  record.perf = search_recorder(parsed);
  if (may_open_all_events()) {
    record.perf.recorder = perf::RecorderChoice::kOwnUnlessNamed;
  }
  record.names_beside = true;  // they go with the file
  record.flags = parsed.flags;
  record.flags.lines = true;
  record.duration = std::chrono::seconds{
      parse_whole(parsed.value("duration").value_or(std::to_string(kRecordedSeconds)), "-d",
                  kMostRecordedSeconds)};
  // The file does not outlive this command: perf need not keep copies of what it mentions.
  record.perf_options.add({"--no-buildid-cache"});
  if (parsed.has("freq") || !parsed.has("what")) {  // recipes know better
    const auto frequency =
        parse_whole(parsed.value("freq").value_or(std::to_string(kRecordedFrequency)), "-F",
                    kMostRecordedFrequency);
    record.perf_options.add({"-F", std::to_string(frequency)});
  }
  record.engine = record::EngineChoice::kAuto;
  if (const auto name = parsed.value("engine")) {
    record.engine = parse_engine(*name).choice;
  } else {
    (void)apply_default_engine(parsed.default_engine, record);
  }
  return record;
}

std::vector<std::string> recipes_of(const ParsedWords& parsed) {
  const auto list = parsed.value("what");
  auto recipes = list ? parse_recipes(*list) : std::vector<std::string>{};
  if (std::ranges::find(recipes, kMallocRecipe) != recipes.end()) {
    throw CommandLineError{"--what malloc needs probes: use record --what malloc, then give FILE",
                           record::kUsage};
  }
  return recipes;
}

void draw(const std::string& text) {
  if (!text.empty()) {
    fmt::print(stderr, "{}", text);
    (void)std::fflush(stderr);
  }
}

// Of events that the recording has even if no sample is of them.
void mark_waits(report::Profile& profile) {
  for (auto& event : profile.events) {
    if (event.name == "context-switches") {
      event.unit = report::Unit::kWaits;
    }
  }
}

}  // namespace

std::vector<std::string> parse_files(const ParsedWords& parsed) {
  auto files = parsed.split.command;
  if (auto input = parsed.value("input")) {
    files.push_back(*std::move(input));
  }
  if (files.empty()) {
    files.emplace_back(kDefaultFile);
  }
  return files;
}

std::string parse_file(const VerbSpec& verb, const ParsedWords& parsed) {
  const auto files = parse_files(parsed);
  if (files.size() > 1) {
    throw CommandLineError{
        fmt::format("{}: give one FILE{}", verb.name,
                    parsed.split.separator
                        ? "; to launch a command: perf-pyinject why -o page.html -- COMMAND"
                        : ""),
        record::kUsage};
  }
  return files.front();
}

namespace {

// An operand that names no file is a pid or the name of a process, unless it can only be meant for
// a file, as "web.data".
void take_target_word(ParsedWords& parsed) {
  auto& words = parsed.split.command;
  if (words.size() != 1 || parsed.has("input") ||
      words.front().find_first_of("/.") != std::string::npos ||
      ::access(words.front().c_str(), F_OK) == 0) {
    return;
  }
  if (is_pid_list(words.front())) {
    const auto pids = parse_pids(words.front());
    parsed.pids.insert(parsed.pids.end(), pids.begin(), pids.end());
  } else {
    parsed.name = words.front();
  }
  words.clear();
}

}  // namespace

ProfileSource parse_source(const VerbSpec& verb, ParsedWords& parsed) {
  take_target_word(parsed);
  auto targets = parse_targets(parsed);
  if (std::holds_alternative<record::Launched>(targets)) {
    auto file = parse_file(verb, parsed);
    for (const auto* const option : {"children", "duration", "freq", "off-cpu", "engine", "what"}) {
      if (parsed.has(option)) {
        throw CommandLineError{
            fmt::format("{}: --{} is for a new recording: with -p, -a, -u, --comm or -G", verb.name,
                        option),
            record::kUsage};
      }
    }
    return {.file = std::move(file), .record = {}};
  }
  if (!parsed.split.command.empty() || parsed.has("input")) {
    throw CommandLineError{fmt::format("{}: give either FILE or processes to record", verb.name),
                           record::kUsage};
  }
  return {
      .file = {}, .record = recording_of(parsed, std::move(targets)), .what = recipes_of(parsed)};
}

namespace {

bool is_named_but_missing(const targets::Scope& scope, base::Logger& logger) {
  const bool missing = !scope.name.empty() &&
                       std::ranges::none_of(targets::visible_processes(), [&scope](base::Pid pid) {
                         return targets::is_in(scope, pid);
                       });
  if (missing) {
    logger.error("neither a file nor a process is called {}", base::printable(scope.name));
  }
  return missing;
}

}  // namespace

std::optional<report::Profile> read_recording(const std::string& file, Reporter& reporter,
                                              bool live, bool may_be_empty) {
  auto& logger = reporter.logger();
  using Clock = std::chrono::steady_clock;
  ReadingProgress progress{base::printable(file), Clock::now()};
  report::ReadOptions options{.open_perf_map = targets::open_perf_map};
  if (live) {
    options.progress = [&](double done) {
      draw(progress.line(done, Clock::now()));
      return true;
    };
  }
  auto read = report::read_profile(file, options);
  draw(progress.end());
  if (const auto* const unsupported = std::get_if<perfdata::UnsupportedFile>(&read)) {
    logger.error("{}: {}", base::printable(file), unsupported->why);
    return std::nullopt;
  }
  auto profile = std::get<report::Profile>(std::move(read));
  for (const auto& note : profile.notes) {
    logger.warning("{}", note);
  }
  if (profile.samples.empty() && !may_be_empty) {
    logger.error("{}: no samples", base::printable(file));
    return std::nullopt;
  }
  return profile;
}

namespace {

// PATTERN itself, if there is such a file, else what it matches, in order. Throws base::Error if
// that is nothing.
std::vector<std::string> matching(const std::string& pattern) {
  if (::access(pattern.c_str(), F_OK) == 0 || pattern.find_first_of("*?[") == std::string::npos) {
    return {pattern};
  }
  glob_t found{};
  std::vector<std::string> paths;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  ::globfree(&found);
  if (paths.empty()) {
    throw base::Error{"no file matches " + base::printable(pattern)};
  }
  return paths;
}

std::vector<std::string> recordings_of(const std::vector<std::string>& words) {
  std::vector<std::string> files;
  for (const auto& word : words) {
    auto paths = matching(word);
    std::ranges::move(paths, std::back_inserter(files));
  }
  if (files.size() > 1) {
    const std::set<std::string> all{files.begin(), files.end()};
    std::erase_if(files, [&](const std::string& file) {
      constexpr std::string_view kRaw = ".raw";
      return file.ends_with(".names") ||
             (file.ends_with(kRaw) && all.contains(file.substr(0, file.size() - kRaw.size())));
    });
    if (files.empty()) {
      throw base::Error{"no file matches " + base::printable(words.front())};
    }
  }
  return files;
}

}  // namespace

std::string name_of_recordings(const std::vector<std::string>& files) {
  return files.size() == 1 ? base::printable(files.front())
                           : base::counted(files.size(), "recording");
}

std::optional<report::Profile> read_recordings(const std::vector<std::string>& files,
                                               Reporter& reporter, bool live) {
  std::vector<report::Profile> profiles;
  for (const auto& file : recordings_of(files)) {
    auto profile = read_recording(file, reporter, live);
    if (!profile) {
      return std::nullopt;
    }
    profiles.push_back(*std::move(profile));
  }
  return report::merge(std::move(profiles));
}

std::variant<report::Profile, int> load_profile(const ProfileSource& source,
                                                const CommandLine& line, Reporter& reporter,
                                                const Terminal& terminal, bool may_be_empty) {
  std::optional<base::ScratchDirectory> directory;
  auto file = source.file;
  if (source.record && is_named_but_missing(source.record->scope(), reporter.logger())) {
    return record::kFailure;
  }
  if (source.record) {
    auto record = *source.record;
    file = directory.emplace("-").path() + "/perf.data";
    record.perf_options.add({"-o", file});
    auto& logger = reporter.logger();
    auto probed = RecipeProbes::of(source.what, record.pids(), logger);
    if (const auto* const status = std::get_if<int>(&probed)) {
      return *status;
    }
    auto& probes = std::get<RecipeProbes>(probed);
    if (!source.what.empty() && !add_recipes(source.what, probes, record, logger)) {
      return record::kFailure;
    }
    if (recorder::refusal(record.perf_options.words())) {
      record.perf.recorder = perf::RecorderChoice::kPerfOrOwn;
    }
    Console console{logger, is_live(line, terminal), "", &reporter};
    const auto detector = python::make_detector();
    const auto injector = python::make_injector();
    record::RecordResult result;
    {
      targets::StopSignals stop;
      result = record::record(record, *detector, *injector, logger, console, stop);
    }
    probes.remove(logger);
    // Ctrl-C only ends the recording early.
    constexpr int kInterrupted = 128 + SIGINT;
    if (result.status != 0 && !(result.status == kInterrupted && result.summary)) {
      if (std::filesystem::exists(file)) {
        logger.warning(
            "the recording was temporary and is removed: TMPDIR=DIR chooses a directory with more "
            "room, perf-pyinject record keeps the file");
      }
      return result.status;
    }
  }
  auto profile = read_recording(file, reporter, is_live(line, terminal),
                                source.record.has_value() && may_be_empty);
  if (!profile) {
    return record::kFailure;
  }
  if (source.record && source.record->flags.off_cpu) {
    mark_waits(*profile);
  }
  return *std::move(profile);
}

std::string facts_of(const report::Profile& profile) {
  constexpr double kSecond = 1e9;
  const auto length =
      static_cast<double>(profile.samples.back().time - profile.samples.front().time) / kSecond;
  const auto waits = static_cast<std::uint64_t>(
      std::ranges::count_if(profile.samples, [&](const report::Sample& sample) {
        return profile.events[sample.event].unit == report::Unit::kWaits;
      }));
  const auto samples = profile.samples.size() - waits;
  return fmt::format("{:.1f} s{}{}, {}", length,
                     samples == 0 ? "" : ", " + base::counted(samples, "sample"),
                     waits == 0 ? "" : ", " + base::counted(waits, "wait"),
                     base::counted(profile.threads.size(), "thread"));
}

std::string processes_of(const report::Profile& profile) {
  std::map<std::uint32_t, std::string_view> processes;
  for (const auto& thread : profile.threads) {
    processes[thread.pid] = thread.process.empty() ? thread.name : thread.process;
  }
  return processes.size() == 1
             ? fmt::format("{} (pid {})", base::printable(processes.begin()->second),
                           processes.begin()->first)
             : base::counted(processes.size(), "process", "processes");
}

std::string page_facts(const report::Profile& profile, bool live) {
  auto facts = profile.samples.empty() ? "no samples" : facts_of(profile);
  if (live) {
    facts += " · " + base::printable(base::host_name());
  }
  const auto begin = profile.samples.empty()
                         ? std::nullopt
                         : report::wall_time(profile.clock, profile.samples.front().time);
  if (begin) {
    constexpr std::uint64_t kSecond = 1'000'000'000;
    facts += fmt::format(" · {:%Y-%m-%d %H:%M:%S} UTC",
                         fmt::gmtime(static_cast<std::time_t>(*begin / kSecond)));
  }
  if (!profile.engine.empty()) {
    facts += " · " + profile.engine + " engine";
  }
  return facts + " · perf-pyinject " PYINJECT_VERSION;
}

std::string title_of_process(base::Pid pid) {
  constexpr std::size_t kMost = 100;
  const auto command = procfs::read_command(pid);
  return command.empty() ? fmt::format("pid {}", pid.value())
                         : fmt::format("{} (pid {})", base::printable(command, kMost), pid.value());
}

}  // namespace pyinject::cli
