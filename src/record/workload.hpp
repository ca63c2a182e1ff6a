// COMMAND of `record`: the clock of a recording, or what is recorded.
#pragma once

#include "pyinject/base/child.hpp"
#include "pyinject/base/log.hpp"
#include "pyinject/base/pid.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace pyinject::session {

class Workload {
 public:
  // COMMAND may be empty: there is none.
  Workload(const std::vector<std::string>& command, base::Logger& logger)
      : command_{command}, logger_{logger} {}

  // 0, or the status to end with, which has been logged, when it cannot be run (126, 127).
  [[nodiscard]] int check() const;
  // Forks it; it waits, and never runs when this tool dies before start(). IGNORED: signals that it
  // is to ignore. ENVIRONMENT is added to ours.
  void hold(const std::vector<int>& ignored, const std::map<std::string, std::string>& environment);
  // Starts it, or lets the held one go. False: it could not be executed, which has been logged;
  // status() says how.
  [[nodiscard]] bool start();
  // 126 or 127 when start() failed, else 0.
  [[nodiscard]] int status() const { return status_; }

  // nullptr: it was neither held nor started.
  [[nodiscard]] base::Child* process() const { return process_.get(); }
  // SIGTERM.
  void terminate() const;
  // Waits until it has ended after terminate() or by itself; kills one that does not.
  void wait_or_kill() const;

 private:
  const std::vector<std::string>& command_;
  base::Logger& logger_;
  std::unique_ptr<base::Child> process_;
  bool held_ = false;
  int status_ = 0;
};

}  // namespace pyinject::session
