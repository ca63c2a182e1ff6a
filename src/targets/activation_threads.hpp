// Activates processes that arrive during a recording, several at a time.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/targets/manager.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace pyinject::targets {

class ActivationThreads {
 public:
  // ANNOUNCE is called in one of the threads when take() has another result.
  ActivationThreads(Manager& manager, base::Logger& logger, std::function<void()> announce)
      : manager_{manager}, logger_{logger}, announce_{std::move(announce)} {}
  ~ActivationThreads() { stop(); }
  ActivationThreads(const ActivationThreads&) = delete;
  ActivationThreads& operator=(const ActivationThreads&) = delete;

  // No effect after stop(). Throws base::SystemError if there is no thread.
  void add(base::Pid pid);
  // If all threads have been waiting for their targets for some time: the next process must not
  // wait for them.
  void add_threads();
  // Whether add_threads() would.
  [[nodiscard]] bool may_help();
  using Result = std::pair<base::Pid, LateArrival>;
  [[nodiscard]] std::vector<Result> take();
  // Ends pending activations; no more follow.
  void stop();

 private:
  void work();

  Manager& manager_;
  base::Logger& logger_;
  const std::function<void()> announce_;
  std::mutex mutex_;  // protects all members below except threads_
  std::condition_variable wake_;
  bool ending_ = false;
  std::deque<base::Pid> queue_;
  std::vector<Result> done_;
  std::vector<std::thread> threads_;
};

}  // namespace pyinject::targets
