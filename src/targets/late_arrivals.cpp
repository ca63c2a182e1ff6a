#include "targets/late_arrivals.hpp"

#include "pyinject/base/error.hpp"

#include <cerrno>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace pyinject::targets {

namespace {

using watch::Change;

// Poll interval if the kernel cannot report when an interpreter is ready.
constexpr long kLooksAgain = 10'000'000;  // ns

void add_to(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
    throw base::SystemError{"cannot wait for processes", errno};
  }
}

}  // namespace

LateArrivals::LateArrivals(std::unique_ptr<watch::ProcessWatch> watch, python::Detector& detector,
                           Manager& manager, base::Logger& logger, TargetSet& target_set,
                           ArrivalListener listener)
    : watch_{std::move(watch)},
      detector_{detector},
      manager_{manager},
      target_set_{target_set},
      listener_{std::move(listener)},
      timer_{::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)},
      results_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)},
      epoll_{::epoll_create1(EPOLL_CLOEXEC)},
      threads_{manager, logger, [this] { announce(); }},
      judge_{detector, [this] { announce(); }} {
  if (!timer_.valid() || !results_.valid() || !epoll_.valid()) {
    throw base::SystemError{"cannot wait for processes", errno};
  }
  for (const int fd : {watch_->fd(), timer_.get(), results_.get()}) {
    add_to(epoll_.get(), fd);
  }
}

void LateArrivals::add_known(const std::vector<base::Pid>& pids) {
  seen_.pythons.insert(pids.begin(), pids.end());
}

void LateArrivals::retry(const std::vector<base::Pid>& pids) {
  for (const auto pid : pids) {
    attempt(pid);
  }
}

void LateArrivals::handle() {
  std::uint64_t count = 0;
  const bool look_again = ::read(timer_.get(), &count, sizeof count) > 0;
  [[maybe_unused]] const auto taken = ::read(results_.get(), &count, sizeof count);
  take_results();  // they are older than the new events
  for (const auto& event : watch_->take()) {
    note(event);
  }
  for (const auto& [pid, reported] : seen_.not_ready) {
    if (look_again && !reported) {
      seen_.candidates.insert(pid);
    }
  }
  for (const auto pid : std::exchange(seen_.candidates, {})) {
    attempt(pid);
  }
  if (look_again) {
    threads_.add_threads();
  }
  set_timer();
}

void LateArrivals::note(const watch::ProcessEvent& event) {
  const bool joined = target_set_.note(event);
  const auto pid = event.pid;
  switch (event.change) {
    case Change::kForked:
      // Most children of programs that start others exec within a millisecond: leave them alone
      // until then.
      if (seen_.pythons.contains(event.parent)) {
        seen_.pythons.insert(pid);
        seen_.candidates.insert(pid);
        if (listener_.forked) {
          listener_.forked(pid);
        }
      }
      break;
    case Change::kExec:
      judge_.forget(pid);
      forget(pid);
      break;
    case Change::kExited:
      end(pid);
      break;
    case Change::kMapped:
      note_mapping(event);
      break;
    case Change::kWritten:
      if (const auto found = seen_.not_ready.find(pid); found != seen_.not_ready.end()) {
        found->second = false;  // it comes only once
      }
      seen_.candidates.insert(pid);
      break;
    case Change::kAppeared:
      seen_.candidates.insert(pid);
      break;
    case Change::kGeneratedCode:
      break;
    case Change::kNamed:
      if (joined && seen_.pythons.contains(pid)) {
        seen_.candidates.insert(pid);
      }
      break;
  }
}

void LateArrivals::note_mapping(const watch::ProcessEvent& event) {
  const auto pid = event.pid;
  if (target_set_.contains(pid)) {
    const auto verdict = detector_.known_verdict(event.file);
    if (verdict.value_or(false)) {
      note_interpreter(pid);
      return;
    }
    if (!verdict) {
      judge_.ask(pid, event.file, event.path);
    }
  }
  if (seen_.not_ready.contains(pid) || seen_.trying.contains(pid)) {
    seen_.candidates.insert(pid);
  }
}

void LateArrivals::note_interpreter(base::Pid pid) {
  if (seen_.pythons.insert(pid).second) {
    seen_.unsettled.insert(pid);
  }
  seen_.candidates.insert(pid);
}

// Thread-safe.
void LateArrivals::announce() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(results_.get(), &one, sizeof one);
}

// Counts a process that exited before an attempt; attempts in flight count their own.
void LateArrivals::end(base::Pid pid) {
  const bool unsettled = seen_.unsettled.contains(pid) && pid != left_out_;
  if (seen_.pythons.contains(pid)) {
    judge_.forget(pid);
  } else {
    judge_.ended(pid);
  }
  forget(pid);
  if (!unsettled) {
    return;
  }
  if (const auto found = seen_.trying.find(pid); found != seen_.trying.end()) {
    found->second.ended = true;
  } else {
    manager_.missed(pid);
  }
}

void LateArrivals::forget(base::Pid pid) {
  seen_.unsettled.erase(pid);
  const bool python = seen_.pythons.erase(pid) != 0;
  seen_.candidates.erase(pid);
  seen_.not_ready.erase(pid);
  if (const auto found = seen_.trying.find(pid); found != seen_.trying.end()) {
    found->second.gone = true;
  }
  auto active = manager_.forget(pid);
  if ((python || active) && listener_.ended) {
    listener_.ended(pid, std::move(active));
  }
}

void LateArrivals::attempt(base::Pid pid) {
  if (!target_set_.contains(pid) || pid == left_out_) {
    return;
  }
  const auto [entry, inserted] = seen_.trying.try_emplace(pid);
  if (!inserted) {
    entry->second.again = true;
    return;
  }
  threads_.add(pid);
}

void LateArrivals::take_results() {
  for (auto& [pid, arrival] : threads_.take()) {
    settle(pid, std::move(arrival));
  }
  for (const auto& [pid, ended] : judge_.take()) {
    if (!ended) {
      note_interpreter(pid);
    } else if (pid != left_out_) {
      manager_.missed(pid);
    }
  }
}

void LateArrivals::settle(base::Pid pid, LateArrival arrival) {
  const auto tried = seen_.trying.extract(pid);
  const bool unseen = arrival.late == Late::kDifferentProgram;  // its exec record was lost
  if (unseen || (!tried.empty() && tried.mapped().gone)) {
    // The result is about the program that it ran before.
    const bool unsettled = seen_.unsettled.contains(pid);
    forget(pid);
    if (!unseen && tried.mapped().ended &&
        (arrival.late == Late::kNotYet || arrival.late == Late::kGone)) {
      manager_.missed(pid);
    }
    if (unseen || tried.mapped().again) {
      seen_.candidates.insert(pid);
    }
    if (unseen || unsettled) {
      seen_.pythons.insert(pid);
    }
    if (unsettled) {
      seen_.unsettled.insert(pid);
    }
    return;
  }
  const auto before = seen_.not_ready.extract(pid);
  if (arrival.late == Late::kInherited && listener_.forked) {
    listener_.forked(pid);  // in case the fork event was lost
  }
  if (arrival.late == Late::kInherited || arrival.late == Late::kActive) {
    seen_.pythons.insert(pid);
  }
  if (arrival.late == Late::kGone) {
    return;  // its exit is reported, too
  }
  if (arrival.late != Late::kNotYet) {
    seen_.unsettled.erase(pid);
    return;
  }
  bool reported = !before.empty() && before.mapped();
  if (arrival.initialized && !reported) {
    reported = watch_->report_write(pid, arrival.initialized->value());
    if (reported) {
      seen_.candidates.insert(pid);  // the int may have been written since the examination
    }
  }
  seen_.not_ready.emplace(pid, reported);
  if (!tried.empty() && tried.mapped().again) {
    seen_.candidates.insert(pid);
  }
}

void LateArrivals::set_timer() {
  bool needed = threads_.may_help();
  for (const auto& entry : seen_.not_ready) {
    needed = needed || !entry.second;
  }
  if (needed != timer_runs_) {
    const long period = needed ? kLooksAgain : 0;
    const itimerspec spec{.it_interval = {.tv_sec = 0, .tv_nsec = period},
                          .it_value = {.tv_sec = 0, .tv_nsec = period}};
    ::timerfd_settime(timer_.get(), 0, &spec, nullptr);
    timer_runs_ = needed;
  }
}

void LateArrivals::stop() {
  judge_.stop();
  threads_.stop();
}

}  // namespace pyinject::targets
