// SIGINT, SIGTERM and SIGHUP as requests while this object lives.
//
// For example:
//   targets::StopSignals stop;  // before other threads: they inherit the blocked signals
//   pollfd wait{.fd = stop.fd(), .events = POLLIN, .revents = 0};
//   (void)::poll(&wait, 1, -1);
//   const int signal = stop.next().value_or(SIGINT);
#pragma once

#include "pyinject/base/unique_fd.hpp"
#include "pyinject/targets/stop_requests.hpp"

#include <csignal>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace pyinject::targets {

// Blocks the three signals and reads them from a signalfd; ignores SIGPIPE. A SIGHUP that was
// ignored at the start (nohup) stays ignored. No signal is lost.
class StopSignals : public StopRequests {
 public:
  StopSignals();
  // Restores mask and dispositions; a pending signal then takes its usual effect.
  ~StopSignals() override;

  // If there are several objects, only the latest may listen. The first call starts a thread, and
  // changes the descriptor.
  void listen(std::function<void(int)> listener) override;
  [[nodiscard]] int fd() const override {
    return thread_.joinable() ? StopRequests::fd() : fd_.get();
  }
  [[nodiscard]] std::optional<StopSignal> next_with_origin() override;
  // Signals that were ignored at the start, so that a command can be started with the same
  // dispositions.
  [[nodiscard]] const std::vector<int>& ignored_before() const override { return ignored_before_; }

 private:
  [[nodiscard]] std::optional<StopSignal> take() const;
  void wait_for_signals();
  void take_all();

  std::vector<int> ignored_before_;
  sigset_t old_mask_{};
  struct sigaction old_pipe_ {};
  base::UniqueFd fd_;
  base::UniqueFd ended_;  // an eventfd: tells the thread to exit
  std::mutex mutex_;      // whoever has it takes the signals in their order
  std::thread thread_;
};

}  // namespace pyinject::targets
