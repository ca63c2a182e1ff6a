#include "targets/activation_threads.hpp"

#include "base/format.hpp"
#include "pyinject/base/error.hpp"

#include <algorithm>
#include <exception>
#include <system_error>

namespace pyinject::targets {

namespace {

// An activation mostly waits for the target.
constexpr std::size_t kThreads = 4;
// Limit including threads that wait for targets which reach no safe point.
constexpr std::size_t kMostThreadsWaiting = 64;

}  // namespace

void ActivationThreads::add(base::Pid pid) {
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

void ActivationThreads::add_threads() {
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

bool ActivationThreads::may_help() {
  const std::scoped_lock lock{mutex_};
  return !queue_.empty() && threads_.size() < kMostThreadsWaiting;
}

void ActivationThreads::work() {
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
    announce_();
  }
}

std::vector<ActivationThreads::Result> ActivationThreads::take() {
  const std::scoped_lock lock{mutex_};
  return std::exchange(done_, {});
}

void ActivationThreads::stop() {
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
