#include "record/thread_name_watch.hpp"

#include "base/clock.hpp"
#include "base/format.hpp"
#include "pyinject/base/error.hpp"
#include "record/recording_clock.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

namespace pyinject::record {

namespace {

constexpr std::chrono::milliseconds kPatienceForThreadNames{100};
// A look is followed by a pause so many times as long.
constexpr int kPauseOfThreadNames = 199;

}  // namespace

void ThreadNameWatch::look(const targets::ActiveTargets& targets) {
  const auto deadline = base::Deadline::after(kPatienceForThreadNames);
  const auto before = base::now_by(CLOCK_THREAD_CPUTIME_ID);
  auto order = targets;
  std::ranges::sort(order, {}, [](const auto& active) { return active->target.id.pid; });
  const auto first = std::ranges::upper_bound(
      order, latest_, {}, [](const auto& active) { return active->target.id.pid; });
  std::rotate(order.begin(), first, order.end());
  for (const auto& active : order) {
    if (deadline.expired()) {
      break;
    }
    latest_ = active->target.id.pid;
    try {
      read(active);
    } catch (const base::Error& error) {
      logger_.debug("pid {}: the names of its threads cannot be read: {}", latest_.value(),
                    error.what());
    }
  }
  const std::chrono::nanoseconds cost{base::now_by(CLOCK_THREAD_CPUTIME_ID) - before};
  next_ = base::Deadline::Clock::now() + kPauseOfThreadNames * cost;
}

void ThreadNameWatch::look_again(const targets::ActiveTargets& targets) {
  if (base::Deadline::Clock::now() >= next_) {
    look(targets);
  }
}

void ThreadNameWatch::read(const std::shared_ptr<const targets::ActiveTarget>& active) {
  const auto pid = active->target.id.pid;
  auto& watched = watched_[pid];
  if (watched.active != active) {  // new, or it has exec'ed
    watched = {.active = active, .comms = python::ThreadComms::of(active->target)};
  }
  if (!watched.comms) {
    return;
  }
  const auto seen = clock_ ? base::now_by(*clock_) : 0;
  for (const auto& thread : watched.comms->read()) {
    history_.add(static_cast<std::uint32_t>(pid.value()),
                 static_cast<std::uint32_t>(thread.tid.value()), seen, thread.name);
  }
}

}  // namespace pyinject::record
