// SIGINT, SIGTERM and SIGHUP as something to poll for, while this object lives.
#pragma once

#include "pyinject/base/unique_fd.hpp"

#include <csignal>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace pyinject::session {

struct StopSignal {
  int number = 0;
  bool from_kernel = false;  // a terminal's: its whole foreground group has got it
};

// Blocks the three and reads them from a signalfd; ignores SIGPIPE. A SIGHUP that was ignored at
// the start (nohup) stays ignored. One that arrived is not lost: fd() stays readable until next().
class StopSignals {
 public:
  StopSignals();
  // Restores mask and dispositions; a signal still pending then takes its usual effect.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // From here on a thread of its own waits for signals and calls LISTENER with each, so that a
  // signal is heard while the caller is busy; next() still returns it. Of several objects only the
  // latest may listen. Called again, it replaces LISTENER. Throws base::SystemError, and listens to
  // nothing, when there is no thread to be had.
  void listen(std::function<void(int)> listener);

  // Changes with the first listen().
  [[nodiscard]] int fd() const { return arrived_.valid() ? arrived_.get() : fd_.get(); }
  // Takes the next one without waiting.
  [[nodiscard]] std::optional<int> next();
  [[nodiscard]] std::optional<StopSignal> next_with_origin();
  // What was ignored before, for a command that is to be as if it had been started without us.
  [[nodiscard]] const std::vector<int>& ignored_before() const { return ignored_before_; }

 private:
  [[nodiscard]] std::optional<StopSignal> take() const;
  void wait_for_signals();
  void take_all();

  std::vector<int> ignored_before_;
  sigset_t old_mask_{};
  struct sigaction old_pipe_ {};
  base::UniqueFd fd_;
  base::UniqueFd arrived_;  // an eventfd: readable while QUEUE_ has some
  base::UniqueFd ended_;    // another: the thread is to end
  std::mutex mutex_;        // of the two below
  std::deque<StopSignal> queue_;
  std::function<void(int)> listener_;
  std::thread thread_;
};

}  // namespace pyinject::session
