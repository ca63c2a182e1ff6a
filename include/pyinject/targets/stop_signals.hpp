// SIGINT, SIGTERM and SIGHUP as a pollable descriptor while this object lives.
#pragma once

#include "pyinject/base/unique_fd.hpp"
#include "pyinject/session_names.hpp"

#include <csignal>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace pyinject::targets {

struct StopSignal {
  int number = 0;
  bool from_kernel = false;  // sent by a terminal: its whole foreground process group got it
};

// Blocks the three signals and reads them from a signalfd; ignores SIGPIPE. A SIGHUP that was
// ignored at the start (nohup) stays ignored. No signal is lost: fd() stays readable until next().
class StopSignals {
 public:
  StopSignals();
  // Restores mask and dispositions; a pending signal then takes its usual effect.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Starts a thread that waits for signals and calls LISTENER with each, so that signals are
  // noticed while the caller is busy; next() still returns them. If there are several objects, only
  // the latest may listen. A second call replaces LISTENER. Throws base::SystemError, and listens
  // to nothing, if the thread cannot be created.
  void listen(std::function<void(int)> listener);

  // The first listen() changes the descriptor.
  [[nodiscard]] int fd() const { return arrived_.valid() ? arrived_.get() : fd_.get(); }
  // Returns the next signal without waiting.
  [[nodiscard]] std::optional<int> next();
  [[nodiscard]] std::optional<StopSignal> next_with_origin();
  // Signals that were ignored at the start, so that a command can be started with the same
  // dispositions.
  [[nodiscard]] const std::vector<int>& ignored_before() const { return ignored_before_; }

 private:
  [[nodiscard]] std::optional<StopSignal> take() const;
  void wait_for_signals();
  void take_all();

  std::vector<int> ignored_before_;
  sigset_t old_mask_{};
  struct sigaction old_pipe_ {};
  base::UniqueFd fd_;
  base::UniqueFd arrived_;  // an eventfd: readable while QUEUE_ is not empty
  base::UniqueFd ended_;    // an eventfd: tells the thread to exit
  std::mutex mutex_;        // protects the two members below
  std::deque<StopSignal> queue_;
  std::function<void(int)> listener_;
  std::thread thread_;
};

}  // namespace pyinject::targets
