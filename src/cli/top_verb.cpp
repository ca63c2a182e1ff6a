#include "base/file.hpp"
#include "base/format.hpp"
#include "base/text.hpp"
#include "cli/command_line.hpp"
#include "cli/profile_file.hpp"
#include "cli/reporter.hpp"
#include "cli/screen.hpp"
#include "cli/terminal.hpp"
#include "cli/verb_options.hpp"
#include "cli/verbs.hpp"
#include "live/live_sampler.hpp"
#include "live/live_view.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/targets/stop_signals.hpp"
#include "pyinject/targets/target_selection.hpp"
#include "targets/cannot_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <poll.h>
#include <unistd.h>

namespace pyinject::cli {

namespace {

using base::Deadline;
using record::kFailure;
using record::kUsage;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

constexpr int kDefaultFrequency = 199;  // no multiple of the usual timers
constexpr int kMostFrequency = 10'000;
constexpr int kMostSecondsOfTop = 86'400;
constexpr int kSignalled = 128;  // exit status without the signal's number
constexpr milliseconds kInterval{500};
constexpr std::chrono::seconds kDefaultDuration{5};
constexpr std::chrono::seconds kBetweenNames{2};  // of C functions: reading the symbols takes time

constexpr auto kTopOptions = std::to_array<Option>({
    under("which processes", rows::kPid),
    rows::kChildren.with("also those that they fork"),
    rows::kAllCpus.with("all Python processes, started later as well (default)"),
    rows::kUid,
    rows::kComm,
    rows::kCgroup,
    under("how", rows::kFreq),
    {"--once", "sample for some seconds, print the tables, exit; no display"},
    rows::kDuration.with("how long, with --once (default: 5)"),
    rows::kWritten.with("with --once: also write all samples and waits: F.html is a flame graph, "
                        "F.pb.gz for pprof, "
                        "F.jsonl, ...: as export"),
    rows::kNoSource.with("with -o F.html: without the source of the Python functions"),
    {"--json", "for programs, with --once; docs/top-json.md has the fields"},
});

constexpr std::string_view kTopHelp =
    R"(usage: perf-pyinject top [PID[,PID...] | NAME | -a | -u USER | --comm GLOB |
                          -G CGROUP] [OPTION...]

Shows which Python functions, lines, threads, asyncio tasks, greenlets and
processes use the CPU now, for what (byte code, C functions, gc, import,
kernel), and where threads wait (WAIT%). A BPF program reads the stacks
(root, or CAP_BPF with CAP_PERFMON; Linux 5.17 with BTF); otherwise they are
read from outside, less often and without tasks. No process is stopped or
changed.

{options}

keys: f functions, l lines, c C functions, t threads, a tasks and greenlets, P
processes; s w 1 to 6 sort by a column; up and down select a row, enter shows
its stack; / filter; p pause; r start again from zero; h help; q quit

exit status: 0; 125 nothing can be sampled; 128 + N after signal N; 129 usage

examples:
  perf-pyinject top
  perf-pyinject top 4711
  perf-pyinject top shop
  perf-pyinject top --once --json 4711 | jq '.functions[0]'
)";

void parse_top(const VerbArguments& arguments, CommandLine& line) {
  auto parsed = parse_words(top_verb, arguments, Operands::kTargets, line);
  if (line.help) {
    return;
  }
  TopCommand command;
  command.pids = parsed.pids;
  command.scope = parse_scope(parsed);
  command.children = parsed.has("children");
  command.once = parsed.has("once");
  command.json = parsed.has("json");
  command.frequency = parse_whole(parsed.value("freq").value_or(std::to_string(kDefaultFrequency)),
                                  "-F", kMostFrequency);
  command.duration = kDefaultDuration;
  if (command.children && command.pids.empty()) {
    throw CommandLineError{"--children is for -p", kUsage};
  }
  if (const auto duration = parsed.value("duration")) {
    command.duration = std::chrono::seconds{parse_whole(*duration, "-d", kMostSecondsOfTop)};
  }
  command.output = parsed.value("output");
  command.sources = !parsed.has("no-source");
  if (!command.once && (command.json || parsed.has("duration") || command.output)) {
    throw CommandLineError{"--json, -d and -o need --once", kUsage};
  }
  if (command.output) {
    ProfileFile::require_suffix(*command.output);
  }
  line.options = std::move(command);
}

class Top {
 public:
  Top(const TopCommand& command, live::LiveSampler& sampler, targets::StopSignals& signals)
      : command_{command}, sampler_{sampler}, signals_{signals}, began_{sampler.began()} {
    if (command_.pids.size() == 1 && !command_.children) {
      target_ = title_of_process(command_.pids.front());
    }
  }

  // Why the profile may be incomplete, a sentence each. nullopt: there was no process.
  std::optional<std::vector<std::string>> show_once(base::Logger& logger);
  void show();
  // The signal that ended it; 0: none.
  [[nodiscard]] int signal() const { return signal_; }

 private:
  // Takes samples until END, a signal, or input if WITH_INPUT; then returns false, true, true.
  bool wait_until(const Deadline& end, bool with_input);
  void end_interval();
  // False: the user has quit.
  static bool press_keys(Screen& screen, live::LiveView& view);
  [[nodiscard]] live::SessionFacts facts() const {
    return {.processes = sampler_.processes(),
            .lost = sampler_.lost() - lost_before_,
            .frequency = command_.frequency,
            .bpf = sampler_.no_bpf().empty(),
            .note = sampler_.ended()                                      ? "all have exited"
                    : !command_.pids.empty() && sampler_.processes() == 0 ? "no Python now"
                                                                          : "",
            .target = target_};
  }

  const TopCommand& command_;
  live::LiveSampler& sampler_;
  targets::StopSignals& signals_;
  std::string target_;  // if it is one process
  steady_clock::time_point began_;
  steady_clock::time_point next_look_ = began_;
  int signal_ = 0;
  std::uint64_t lost_before_ = 0;  // the latest reset of the profile
};

bool Top::wait_until(const Deadline& end, bool with_input) {
  std::array<pollfd, 3> sources{
      pollfd{.fd = signals_.fd(), .events = POLLIN, .revents = 0},
      pollfd{.fd = sampler_.fd(), .events = POLLIN, .revents = 0},
      pollfd{.fd = with_input ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0}};
  while (!end.expired()) {
    const auto most = static_cast<int>(live::LiveSampler::kMostOften.count());
    const int ready = ::poll(sources.data(), sources.size(), std::min(end.remaining_ms(), most));
    sampler_.collect();
    if (const auto number = signals_.next()) {
      signal_ = *number;
      return true;
    }
    if (ready > 0 && sources[2].revents != 0) {
      if ((sources[2].revents & POLLIN) == 0) {
        signal_ = SIGHUP;  // ignored, but the terminal is closed
      }
      return true;
    }
    if (ready < 0 && with_input) {
      return true;  // SIGWINCH
    }
  }
  return false;
}

void Top::end_interval() {
  const auto now = steady_clock::now();
  sampler_.end_interval(now - began_);
  began_ = now;
  if (now >= next_look_) {
    next_look_ = now + sampler_.look();
  }
}

std::optional<std::vector<std::string>> Top::show_once(base::Logger& logger) {
  bool any = sampler_.processes() != 0;
  const auto end = Deadline::after(command_.duration);
  sampler_.profile().share_since_start();
  while (signal_ == 0 && !end.expired() && !sampler_.ended()) {
    const auto left = nanoseconds{milliseconds{end.remaining_ms()}};
    (void)wait_until(Deadline::after(std::min<nanoseconds>(kInterval, left)), false);
    end_interval();
    any = any || sampler_.processes() != 0;
  }
  if (!any && signal_ == 0) {
    return std::nullopt;
  }
  perfdata::TargetGaps gaps;
  for (const auto pid : command_.pids) {
    targets::add_if_it_cannot_run(pid, gaps);
  }
  auto notes = perfdata::sentences(gaps);
  if (const auto lacks = live::incompleteness(sampler_.profile(), facts()); !lacks.empty()) {
    notes.insert(notes.begin(), lacks);
  }
  for (const auto& note : notes) {
    logger.warning("{}", note);
  }
  sampler_.name_c_functions();
  if (command_.json) {
    base::write_all(STDOUT_FILENO, live::to_json(sampler_.profile(), facts()), "standard output");
    return notes;
  }
  std::string text =
      sampler_.no_bpf().empty() ? live::uses_text(sampler_.profile()) + "\n\n" : std::string{};
  for (const auto view :
       {live::View::kFunctions, live::View::kLines, live::View::kC, live::View::kThreads}) {
    constexpr std::size_t kMostRows = 20;
    if (view == live::View::kC && !sampler_.no_bpf().empty()) {
      continue;  // such stacks do not tell
    }
    text += live::to_text(sampler_.profile(), {.view = view, .most = kMostRows}) + "\n";
  }
  base::write_all(STDOUT_FILENO, text, "standard output");
  return notes;
}

bool Top::press_keys(Screen& screen, live::LiveView& view) {
  while (const auto typed = screen.input()) {
    const auto* const key = std::get_if<live::Key>(&*typed);
    const auto* const character = std::get_if<char>(&*typed);
    if ((key != nullptr && !view.press(*key)) ||
        (character != nullptr && !view.press(*character))) {
      return false;
    }
  }
  return true;
}

void Top::show() {
  Screen screen;
  live::LiveView view{screen.utf8()};
  std::optional<live::Profile> paused;
  auto next = Deadline::after(kInterval);
  auto named = Deadline::after(milliseconds{0});
  while (true) {
    if (view.view() == live::View::kC && named.expired() && !view.paused()) {
      sampler_.name_c_functions();
      named = Deadline::after(kBetweenNames);
    }
    screen.draw(view.lines(paused ? *paused : sampler_.profile(), facts(), screen.size()));
    (void)wait_until(next, true);
    if (signal_ != 0 || !press_keys(screen, view)) {
      return;
    }
    if (view.take_reset()) {
      sampler_.collect();
      sampler_.profile().reset();
      lost_before_ = sampler_.lost();
      began_ = steady_clock::now();
      paused.reset();
    }
    if (!view.paused()) {
      paused.reset();
    } else if (!paused) {
      paused = sampler_.profile();
    }
    if (next.expired()) {
      end_interval();
      next = Deadline::after(kInterval);
    }
  }
}

int run_top(const CommandLine& line, Reporter& reporter, const Terminal& /*terminal*/) {
  const auto& command = std::get<TopCommand>(line.options);
  auto& logger = reporter.logger();
  if (!command.once && (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0)) {
    logger.error("top needs a terminal: use --once");
    return kFailure;
  }
  std::optional<ProfileFile> file;  // fails before the recording, not after it
  if (command.output) {
    file.emplace(*command.output);
  }
  targets::StopSignals signals;
  auto started =
      live::LiveSampler::start({.pids = targets::without_repetitions(command.pids),
                                .scope = command.scope,
                                .children = command.children,
                                .period = nanoseconds{std::chrono::seconds{1}} / command.frequency,
                                .gil = true,
                                .tasks = true,
                                .keep = file.has_value()});
  if (const auto* const why = std::get_if<std::string>(&started)) {
    logger.error("top: {}", *why);
    return kFailure;
  }
  auto& sampler = *std::get<std::unique_ptr<live::LiveSampler>>(started);
  if (!sampler.no_bpf().empty()) {
    logger.warning("top: no BPF: {}; stacks are read from outside, less often and without tasks",
                   sampler.no_bpf());
  }
  for (const auto& refusal : sampler.refusals()) {
    logger.error("{}", refusal);
  }
  if (!command.pids.empty() && sampler.processes() == 0) {
    return kFailure;
  }
  Top top{command, sampler, signals};
  if (command.once) {
    auto notes = top.show_once(logger);
    if (!notes) {
      logger.error("no Python process {}; perf-pyinject status lists them",
                   missing_text(command.scope));
      return kFailure;
    }
    if (file) {
      auto profile = sampler.kept();
      profile.notes = *std::move(notes);
      const auto title = processes_of(profile);
      file->write(std::move(profile), {.title = title, .sources = command.sources}, logger);
    }
  } else {
    top.show();
  }
  return top.signal() == 0 ? 0 : kSignalled + top.signal();
}

}  // namespace

const VerbSpec top_verb{.name = "top",
                        .summary = "show live which functions, lines and threads use the CPU",
                        .options = kTopOptions,
                        .parse = parse_top,
                        .run = run_top,
                        .help = kTopHelp,
                        .operands = Completed::kPids};

}  // namespace pyinject::cli
