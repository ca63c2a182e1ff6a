#include "targets/guard_process.hpp"

#include "base/format.hpp"
#include "pyinject/base/deadline.hpp"
#include "targets/map_copies.hpp"
#include "tracee/shared_stops.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <thread>
#include <utility>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pyinject::targets {

namespace {

using std::chrono::milliseconds;

// A target that hangs must not delay the others.
constexpr milliseconds kOneTry{200};
constexpr milliseconds kFirstWait{2};
constexpr milliseconds kMostPause{100};
constexpr std::chrono::seconds kPatience{60};

}  // namespace

void GuardProcess::run(int socket) {
  tracee::keep_own_stops_private();
  tool_pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, tool_.value(), 0)));
  if (::getppid() != tool_.value()) {
    tool_pidfd_.reset();  // the tool has exited: its pid may belong to another process
  }
  while (true) {
    wait_for_message(socket);
    auto message = receive(socket);
    switch (message.kind) {
      case GuardMessage::Kind::kWatch:
        knows_targets_ = true;
        children_.watch(message.ancestor);
        watched_.push_back({.target = std::move(message.target), .map = {}});
        break;
      case GuardMessage::Kind::kMap:
        for (auto& watched : watched_) {
          if (watched.target.id == message.target.id) {
            watched.map = std::move(message.map);
          }
        }
        break;
      case GuardMessage::Kind::kForget:
        std::erase_if(watched_,
                      [&](const auto& one) { return one.target.id == message.target.id; });
        break;
      case GuardMessage::Kind::kStops:
        knows_targets_ = true;
        break;
      case GuardMessage::Kind::kDismiss:
        return;
      case GuardMessage::Kind::kToolEnded:
        take_over();
        return;
    }
  }
}

// While waiting, checks for a stop that does not end, once there are targets: SIGSTOP or a frozen
// cgroup can hold the tool, and thereby the target, indefinitely.
void GuardProcess::wait_for_message(int socket) {
  pollfd message{.fd = socket, .events = POLLIN, .revents = 0};
  while (true) {
    const int ready = ::poll(&message, 1, knows_targets_ ? next_look_.remaining_ms() : -1);
    if (ready > 0 || (ready < 0 && errno != EINTR)) {
      return;
    }
    if (knows_targets_ && next_look_.expired()) {
      next_look_ = base::Deadline::after(StalledStops::kPollInterval);
      if (stops_.look(tracee::shared_stops())) {
        kill_tool();
      }
    }
  }
}

// The kernel then detaches all tracees of the tool and closes its end of the socket.
void GuardProcess::kill_tool() {
  if (!std::exchange(killed_tool_, true)) {
    logger_.error("guard: perf-pyinject (pid {}) keeps a process stopped: killing perf-pyinject",
                  tool_.value());
  }
  if (tool_pidfd_.valid()) {
    (void)::syscall(SYS_pidfd_send_signal, tool_pidfd_.get(), SIGKILL, nullptr, 0);
  }
}

void GuardProcess::take_over() {
  reserve_.release();
  if (watched_.empty() && children_.none()) {
    return;
  }
  logger_.warning("guard: perf-pyinject (pid {}) left trampolines on: switching them off",
                  tool_.value());
  switch_off_all();
  perf::remove_unfinished_copies(tool_, options_.maps);
  MapCopies copies{options_.maps, logger_, "guard: "};
  for (auto& watched : watched_) {
    copies.collect(watched.map, watched.target.id.pid);
  }
}

// Retries at growing intervals: the dying tool may still be their tracer, a request may be pending,
// or descriptors or threads may be short.
void GuardProcess::switch_off_all() {
  const auto deadline = base::Deadline::after(kPatience);
  milliseconds between = kFirstWait;
  while (true) {
    for (auto& watched : watched_) {
      if (!watched.settled) {
        try_to_settle(watched);
      }
    }
    const bool no_child_on = no_more_children();
    const bool all = std::ranges::all_of(watched_, [](const auto& one) { return one.settled; });
    if ((all && no_child_on) || deadline.expired()) {
      break;
    }
    std::this_thread::sleep_for(between);
    between = std::min(between * 2, kMostPause);
  }
  for (const auto& watched : watched_) {
    if (!watched.settled) {
      const auto pid = watched.target.id.pid.value();
      logger_.error(
          "guard: pid {}: cannot switch the trampoline off: {}; it may still be on: perf-pyinject "
          "deactivate -p {}",
          pid, watched.problem, pid);
    }
  }
}

void GuardProcess::try_to_settle(Watched& watched) {
  const auto pid = watched.target.id.pid.value();
  try {
    const auto result =
        injector_.deactivate(watched.target, {.deadline = kOneTry, .only_of = options_.session});
    if (const auto* refusal = std::get_if<python::Refusal>(&result)) {
      // With options_.session, kOtherSession is the tool itself, still exiting: retry.
      const bool others =
          refusal->reason == python::Reason::kOtherSession && !options_.session.has_value();
      watched.settled = python::has_gone(refusal->reason) ||
                        refusal->reason == python::Reason::kFinalizing || others;
      watched.problem = python::describe(*refusal);
      logger_.debug("guard: pid {}: {}", pid, watched.problem);
      return;
    }
    watched.settled = true;
    if (std::get<python::Deactivation>(result).mechanism == python::Mechanism::kStore) {
      logger_.info("guard: pid {}: trampoline off", pid);
    }
  } catch (const std::exception& error) {
    watched.problem = error.what();
    logger_.debug("guard: pid {}: {}", pid, error.what());
  }
}

// Adds active children to the watched processes. False: there are some, or it is unknown.
bool GuardProcess::no_more_children() {
  if (!options_.session) {
    return true;
  }
  try {
    auto found = children_.find();
    for (auto& target : found.active) {
      watched_.push_back({.target = std::move(target), .map = {}});
    }
    return found.complete && found.active.empty();
  } catch (const std::exception& error) {
    logger_.debug("guard: children of targets: {}", error.what());
    return false;
  }
}

}  // namespace pyinject::targets
