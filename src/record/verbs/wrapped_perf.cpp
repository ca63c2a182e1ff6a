#include "pyinject/record/wrapped_perf.hpp"

#include "base/format.hpp"
#include "perf/record_options.hpp"
#include "pyinject/base/child.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/perf/output_file.hpp"
#include "pyinject/record/options.hpp"
#include "pyinject/targets/guard.hpp"
#include "pyinject/targets/manager.hpp"
#include "pyinject/targets/stop_signals.hpp"
#include "pyinject/targets/target_selection.hpp"
#include "pyinject/targets/this_session.hpp"
#include "record/completion.hpp"
#include "record/frame_watch.hpp"
#include "record/recording_clock.hpp"
#include "targets/forked_children.hpp"
#include "targets/map_copies.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <utility>

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::session {

namespace {

using base::Deadline;
using Kind = perf::ChosenCallGraph::Kind;

struct FileState {
  ino_t inode = 0;
  timespec written{};
  [[nodiscard]] bool same_as(const FileState& other) const {
    return inode == other.inode && written.tv_sec == other.written.tv_sec &&
           written.tv_nsec == other.written.tv_nsec;
  }
};

// nullopt: not a regular file.
std::optional<FileState> state_of(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
    return std::nullopt;
  }
  return FileState{.inode = facts.st_ino, .written = facts.st_mtim};
}

class WrappedPerf {
 public:
  WrappedPerf(const WrapOptions& options, python::Detector& detector, python::Injector& injector,
              base::Logger& logger, RecordObserver& observer)
      : options_{options},
        detector_{detector},
        injector_{injector},
        logger_{logger},
        observer_{observer},
        chosen_{perf::parse_options(options.arguments)},
        children_{detector, logger, this_session().session},
        maps_{options.maps, logger},
        frames_{logger, recording_clock(chosen_)},
        manager_{make_manager(detector, injector, logger, manager_options())} {
    signals_.listen([this](int) { interrupted_.cancel(); });
    manager_->on_activation([this](const ActiveTarget& active) { activated(active); });
  }

  int run() {
    const auto perf = perf::locate_perf(options_.perf, Deadline::after(kPerfAnswers));
    guard_ = std::make_unique<Guard>(
        detector_, injector_, logger_,
        GuardOptions{.session = this_session().session, .maps = options_.maps});
    int status = kFailure;
    try {
      status = steps(perf);
    } catch (...) {
      (void)leave();
      throw;
    }
    return leave() ? status : kFailure;
  }

 private:
  ManagerOptions manager_options() {
    return {.strict = options_.strict,
            .owner = this_session(),
            .interrupted = [this] { return take_signal(); },
            .cancellation = &interrupted_,
            .before_activation =
                [this](const python::Target& target) {
                  children_.watch(ancestor_now(target.id));
                  guard_->watch(target);
                }};
  }

  [[nodiscard]] bool take_signal() {
    const auto signal = signals_.next();
    signal_ = signal_ == 0 ? signal.value_or(0) : signal_;
    return signal.has_value();
  }

  void activated(const ActiveTarget& active) {
    const auto& map = active.activation.map;
    if (map.valid()) {
      guard_->keep_map(active.target, map.get());
      if (!options_.records()) {
        link_map(active);
      }
    }
    if (options_.records()) {
      frames_.add(active);
      files_.keep(active.target.id.pid);
    }
    observer_.activated(active);
  }

  // A live perf does not look at the map's path in a chrooted target, and reads the map only once.
  void link_map(const ActiveTarget& active) {
    try {
      perf::link_map(active.activation.map.get(), active.target.id.pid, options_.maps);
    } catch (const base::Error& error) {
      logger_.warning("{}; its Python functions may have no names", error.what());
    }
  }

  int steps(const perf::Perf& perf) {
    auto selection = manager_->select(without_repetitions(options_.pids));
    if (interrupted_.cancelled()) {
      (void)take_signal();
      return 128 + signal_;
    }
    if (selection.targets.empty() || (options_.strict && !selection.complete)) {
      return kFailure;
    }
    tell_what_will_be_missing(selection.targets);
    if (!manager_->activate_all(std::move(selection.targets)) || manager_->active().empty()) {
      return signal_ == 0 ? kFailure : 128 + signal_;
    }
    const auto output = perf::output_of(options_.arguments, false);
    const auto before = state_of(output.path);
    const auto begin = Deadline::Clock::now();
    int status = run_perf(perf);
    frames_.stop();
    const bool all_off = switch_off();
    for (const auto& active : manager_->active()) {
      maps_.collect(*active);
    }
    const auto after = state_of(output.path);
    if (options_.records() && chosen_.call_graph && after && !(before && after->same_as(*before))) {
      const bool completed = complete_stacks(perf, output, Deadline::Clock::now() - begin);
      status = status == 0 && !completed ? kFailure : status;
    }
    return all_off ? status : kFailure;
  }

  // Live views cannot be post-processed.
  void tell_what_will_be_missing(const std::vector<python::Target>& targets) {
    const auto verb = fmt::format("{}", fmt::join(options_.verb, " "));
    if (!chosen_.call_graph || chosen_.call_graph->kind == Kind::kNone) {
      logger_.info("perf {} shows stacks only with --call-graph fp{}", verb,
                   options_.records() ? " or dwarf" : "");
      return;
    }
    const auto without =
        std::ranges::find_if(targets, [](const auto& target) { return !target.frame_pointers; });
    if (chosen_.call_graph->kind == Kind::kDwarf && !options_.records()) {
      logger_.warning(
          "perf's own unwinding ends at the first Python function: its callers are missing{}",
          without == targets.end() ? "; --call-graph fp shows them" : "");
    } else if (chosen_.call_graph->kind == Kind::kFramePointers && without != targets.end()) {
      logger_.warning(
          "pid {} (Python {}) was built without frame pointers: its stacks end at the innermost "
          "function{}",
          without->id.pid.value(), python::to_string(without->version),
          options_.records() ? "; stacks of --call-graph dwarf,32768 are completed afterwards"
                             : "");
    }
  }

  int run_perf(const perf::Perf& perf) {
    std::vector<std::string> argv{perf.path};
    argv.insert(argv.end(), options_.verb.begin(), options_.verb.end());
    if (options_.records() && !chosen_.clock) {
      argv.insert(argv.end(), {"-k", "mono"});
    }
    if (const auto output = perf::output_of(options_.arguments, false);
        options_.records() && !output.pipe) {
      argv.insert(argv.end(), {"-o", output.path});  // else the data goes to a piped stdout
    }
    argv.insert(argv.end(), options_.arguments.begin(), options_.arguments.end());
    // perf record killed by SIGHUP leaves an unreadable file.
    std::vector<int> ignored = signals_.ignored_before();
    if (options_.records()) {
      ignored.push_back(SIGHUP);
    }
    base::Child child{{.argv = argv, .death_signal = SIGINT, .ignored = ignored}};
    while (true) {
      while (const auto signal = signals_.next_with_origin()) {
        const bool hangs_up = signal->number == SIGHUP && options_.records();
        if (hangs_up || !signal->from_kernel) {
          child.send_signal(hangs_up ? SIGTERM : signal->number);
        }
      }
      if (const auto status = child.try_wait()) {
        return status->shell_status();
      }
      std::array<pollfd, 2> fds = {{{.fd = child.pidfd(), .events = POLLIN, .revents = 0},
                                    {.fd = signals_.fd(), .events = POLLIN, .revents = 0}}};
      if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) {
        throw base::SystemError{"cannot wait for perf", errno};
      }
    }
  }

  // False: an error was logged.
  bool complete_stacks(const perf::Perf& perf, const perf::Output& output,
                       std::chrono::nanoseconds elapsed) {
    WovenFile woven{.path = output.path, .summary = {}};
    const auto processed = Completion{files_, logger_, observer_}.replace(
        output.path,
        {.recorded = true,
         .perf = perf.path,
         .interrupted = [this] { return take_signal(); },
         .context = {.stacks = frames_.history().empty() ? nullptr : &frames_.history(),
                     .interpreters = weave::interpreters_of(frames_.evaluators()),
                     .open_map = [this](std::uint32_t pid) { return open_map(*manager_, pid); }}},
        woven.summary);
    if (processed == Processed::kDone) {
      observer_.finished({.output = output,
                          .woven = {std::move(woven)},
                          .files = {},
                          .elapsed = elapsed,
                          .targets = manager_->active().size(),
                          .maps = maps_.collected()});
    }
    return processed != Processed::kFailed;
  }

  // False: something may still be on; the guard keeps trying.
  bool leave() {
    const bool all_off = switch_off();
    if (all_off) {
      guard_->dismiss();
    }
    return all_off;
  }

  bool switch_off() {
    const bool own_off = manager_->deactivate_all();
    return children_.switch_off(*manager_) && own_off;
  }

  const WrapOptions& options_;
  python::Detector& detector_;
  python::Injector& injector_;
  base::Logger& logger_;
  RecordObserver& observer_;
  const perf::PerfOptions chosen_;
  // Destroyed last to first: targets are switched off before the guard exits; signals are restored
  // last.
  base::Cancellation interrupted_;
  StopSignals signals_;
  int signal_ = 0;
  std::unique_ptr<Guard> guard_;
  ForkedChildren children_;
  MapCopies maps_;
  weave::RecordedFiles files_;
  FrameWatch frames_;
  std::unique_ptr<Manager> manager_;
};

}  // namespace

int wrap_perf(const WrapOptions& options, python::Detector& detector, python::Injector& injector,
              base::Logger& logger, RecordObserver& observer) {
  return WrappedPerf{options, detector, injector, logger, observer}.run();
}

}  // namespace pyinject::session
