#include "session/guard_process.hpp"

#include "base/format.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/session/manager.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace pyinject::session {

namespace {

using std::chrono::milliseconds;

// One that hangs must not keep the others on.
constexpr milliseconds kOneTry{200};
constexpr milliseconds kFirstWait{2};
constexpr milliseconds kMostPause{100};
constexpr std::chrono::seconds kPatience{60};

}  // namespace

void GuardProcess::run(int socket) {
  while (true) {
    auto message = receive(socket);
    switch (message.kind) {
      case GuardMessage::Kind::kWatch:
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
      case GuardMessage::Kind::kDismiss:
        return;
      case GuardMessage::Kind::kToolEnded:
        take_over();
        return;
    }
  }
}

void GuardProcess::take_over() {
  if (watched_.empty() && children_.none()) {
    return;
  }
  logger_.warning("guard: perf-pyinject (pid {}) was ended before its time: switching off for it",
                  tool_.value());
  switch_off_all();
  if (options_.session) {
    switch_off_children();
  }
  perf::remove_unfinished_copies(tool_, options_.maps);
  for (auto& watched : watched_) {
    collect_map(watched);
  }
}

// The dying tool may still be their tracer for a moment, a request may be on its way: again and
// again, at growing intervals.
void GuardProcess::switch_off_all() {
  const auto deadline = base::Deadline::after(kPatience);
  milliseconds between = kFirstWait;
  while (true) {
    for (auto& watched : watched_) {
      if (!watched.settled) {
        try_to_settle(watched);
      }
    }
    const bool all = std::ranges::all_of(watched_, [](const auto& one) { return one.settled; });
    if (all || deadline.expired()) {
      break;
    }
    std::this_thread::sleep_for(between);
    between = std::min(between * 2, kMostPause);
  }
  for (const auto& watched : watched_) {
    if (!watched.settled) {
      const auto pid = watched.target.id.pid.value();
      logger_.error(
          "guard: pid {}: cannot switch the trampoline off: perf-pyinject deactivate -p {}", pid,
          pid);
    }
  }
}

void GuardProcess::try_to_settle(Watched& watched) {
  const auto pid = watched.target.id.pid.value();
  try {
    const auto result =
        injector_.deactivate(watched.target, {.deadline = kOneTry, .only_of = options_.session});
    if (const auto* refusal = std::get_if<python::Refusal>(&result)) {
      watched.settled =
          python::has_gone(refusal->reason) || refusal->reason == python::Reason::kFinalizing;
      logger_.debug("guard: pid {}: {}", pid, python::describe(*refusal));
      return;
    }
    watched.settled = true;
    if (std::get<python::Deactivation>(result).mechanism == python::Mechanism::kStore) {
      logger_.info("guard: pid {}: trampoline off", pid);
    }
  } catch (const base::Error& error) {
    logger_.debug("guard: pid {}: {}", pid, error.what());
  }
}

void GuardProcess::switch_off_children() {
  const auto manager =
      make_manager(detector_, injector_, logger_, {.owner = {.session = *options_.session}});
  children_.switch_off(*manager);
}

void GuardProcess::collect_map(Watched& watched) {
  if (!watched.map.valid()) {
    return;
  }
  try {
    (void)perf::collect_map(watched.map.get(), watched.target.id.pid, options_.maps);
  } catch (const base::Error& error) {
    logger_.warning("guard: {}", error.what());
  }
}

}  // namespace pyinject::session
