// SIGINT, SIGTERM and SIGHUP as something to poll for, while this object lives.
#pragma once

#include "pyinject/base/unique_fd.hpp"

#include <csignal>
#include <optional>
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

  [[nodiscard]] int fd() const { return fd_.get(); }
  // Takes the next one without waiting.
  [[nodiscard]] std::optional<int> next();
  [[nodiscard]] std::optional<StopSignal> next_with_origin();
  // What was ignored before, for a command that is to be as if it had been started without us.
  [[nodiscard]] const std::vector<int>& ignored_before() const { return ignored_before_; }

 private:
  std::vector<int> ignored_before_;
  sigset_t old_mask_{};
  struct sigaction old_pipe_ {};
  base::UniqueFd fd_;
};

}  // namespace pyinject::session
