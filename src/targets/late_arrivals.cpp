#include "targets/late_arrivals.hpp"

#include "base/format.hpp"
#include "pyinject/base/error.hpp"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <system_error>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace pyinject::targets {

namespace {

using watch::Change;

// An activation mostly waits for the target.
constexpr std::size_t kThreads = 4;
// Limit including threads that wait for targets which reach no safe point.
constexpr std::size_t kMostThreadsWaiting = 64;
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
      logger_{logger},
      target_set_{target_set},
      listener_{std::move(listener)},
      timer_{::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)},
      results_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)},
      epoll_{::epoll_create1(EPOLL_CLOEXEC)},
      judge_{detector, [this] { announce(); }} {
  if (!timer_.valid() || !results_.valid() || !epoll_.valid()) {
    throw base::SystemError{"cannot wait for processes", errno};
  }
  for (const int fd : {watch_->fd(), timer_.get(), results_.get()}) {
    add_to(epoll_.get(), fd);
  }
}

void LateArrivals::add_known(const std::vector<base::Pid>& pids) {
  pythons_.insert(pids.begin(), pids.end());
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
  for (const auto& [pid, reported] : not_ready_) {
    if (look_again && !reported) {
      candidates_.insert(pid);
    }
  }
  for (const auto pid : std::exchange(candidates_, {})) {
    attempt(pid);
  }
  if (look_again) {
    add_threads();
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
      if (pythons_.contains(event.parent)) {
        pythons_.insert(pid);
        candidates_.insert(pid);
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
      if (const auto found = not_ready_.find(pid); found != not_ready_.end()) {
        found->second = false;  // it comes only once
      }
      candidates_.insert(pid);
      break;
    case Change::kAppeared:
      candidates_.insert(pid);
      break;
    case Change::kGeneratedCode:
      break;
    case Change::kNamed:
      if (joined && pythons_.contains(pid)) {
        candidates_.insert(pid);
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
  if (not_ready_.contains(pid) || trying_.contains(pid)) {
    candidates_.insert(pid);
  }
}

void LateArrivals::note_interpreter(base::Pid pid) {
  if (pythons_.insert(pid).second) {
    unsettled_.insert(pid);
  }
  candidates_.insert(pid);
}

// Thread-safe.
void LateArrivals::announce() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(results_.get(), &one, sizeof one);
}

// Counts a process that exited before an attempt; attempts in flight count their own.
void LateArrivals::end(base::Pid pid) {
  const bool unsettled = unsettled_.contains(pid) && pid != left_out_;
  if (pythons_.contains(pid)) {
    judge_.forget(pid);
  } else {
    judge_.ended(pid);
  }
  forget(pid);
  if (!unsettled) {
    return;
  }
  if (const auto found = trying_.find(pid); found != trying_.end()) {
    found->second.ended = true;
  } else {
    manager_.missed(pid);
  }
}

void LateArrivals::forget(base::Pid pid) {
  unsettled_.erase(pid);
  const bool python = pythons_.erase(pid) != 0;
  candidates_.erase(pid);
  not_ready_.erase(pid);
  if (const auto found = trying_.find(pid); found != trying_.end()) {
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
  const auto [entry, inserted] = trying_.try_emplace(pid);
  if (!inserted) {
    entry->second.again = true;
    return;
  }
  const std::scoped_lock lock{mutex_};
  if (ending_) {
    return;
  }
  if (threads_.empty()) {
    for (std::size_t number = 0; number < kThreads; ++number) {
      try {
        threads_.emplace_back([this] { work(); });
      } catch (const std::system_error& error) {
        if (threads_.empty()) {
          throw base::SystemError{"cannot start a thread that looks at new processes",
                                  error.code().value()};
        }
        break;
      }
    }
  }
  queue_.push_back(pid);
  wake_.notify_one();
}

// The existing threads have been waiting for their targets since the timer was set: the next
// process must not wait for them.
void LateArrivals::add_threads() {
  const std::scoped_lock lock{mutex_};
  for (std::size_t number = 0;
       number < std::min(kThreads, queue_.size()) && threads_.size() < kMostThreadsWaiting;
       ++number) {
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      return;  // the existing threads do the work
    }
  }
}

void LateArrivals::work() {
  std::unique_lock lock{mutex_};
  while (true) {
    wake_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    if (ending_) {
      return;
    }
    const auto pid = queue_.front();
    queue_.pop_front();
    lock.unlock();
    LateArrival arrival{.late = Late::kRefused};
    try {
      arrival = manager_.activate_late(pid);
    } catch (const std::exception& error) {
      logger_.error("pid {}: {}", pid.value(), error.what());
    }
    lock.lock();
    done_.emplace_back(pid, std::move(arrival));
    announce();
  }
}

void LateArrivals::take_results() {
  std::vector<std::pair<base::Pid, LateArrival>> done;
  {
    const std::scoped_lock lock{mutex_};
    done.swap(done_);
  }
  for (auto& [pid, arrival] : done) {
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
  const auto tried = trying_.extract(pid);
  const bool unseen = arrival.late == Late::kDifferentProgram;  // its exec record was lost
  if (unseen || (!tried.empty() && tried.mapped().gone)) {
    // The result is about the program that it ran before.
    const bool unsettled = unsettled_.contains(pid);
    forget(pid);
    if (!unseen && tried.mapped().ended &&
        (arrival.late == Late::kNotYet || arrival.late == Late::kGone)) {
      manager_.missed(pid);
    }
    if (unseen || tried.mapped().again) {
      candidates_.insert(pid);
    }
    if (unseen || unsettled) {
      pythons_.insert(pid);
    }
    if (unsettled) {
      unsettled_.insert(pid);
    }
    return;
  }
  const auto before = not_ready_.extract(pid);
  if (arrival.late == Late::kInherited && listener_.forked) {
    listener_.forked(pid);  // in case the fork event was lost
  }
  if (arrival.late == Late::kInherited || arrival.late == Late::kActive) {
    pythons_.insert(pid);
  }
  if (arrival.late == Late::kGone) {
    return;  // its exit is reported, too
  }
  if (arrival.late != Late::kNotYet) {
    unsettled_.erase(pid);
    return;
  }
  bool reported = !before.empty() && before.mapped();
  if (arrival.initialized && !reported) {
    reported = watch_->report_write(pid, arrival.initialized->value());
    if (reported) {
      candidates_.insert(pid);  // the int may have been written since the examination
    }
  }
  not_ready_.emplace(pid, reported);
  if (!tried.empty() && tried.mapped().again) {
    candidates_.insert(pid);
  }
}

void LateArrivals::set_timer() {
  bool needed = false;
  {
    const std::scoped_lock lock{mutex_};
    needed = !queue_.empty() && threads_.size() < kMostThreadsWaiting;
  }
  for (const auto& entry : not_ready_) {
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
  {
    const std::scoped_lock lock{mutex_};
    if (ending_) {
      return;
    }
    ending_ = true;
    queue_.clear();
  }
  manager_.end_late_activations();
  wake_.notify_all();
  for (auto& thread : threads_) {
    thread.join();
  }
}

}  // namespace pyinject::targets
