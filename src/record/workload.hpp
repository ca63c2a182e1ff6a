// COMMAND of `record` and `why`: the clock of a recording or its target.
#pragma once

#include "pyinject/base/child.hpp"
#include "pyinject/base/log.hpp"
#include "pyinject/base/pid.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace pyinject::record {

class Workload {
 public:
  // COMMAND may be empty: no command. OUTPUT: a descriptor for its standard output; negative: ours.
  Workload(const std::vector<std::string>& command, base::Logger& logger, int output = -1)
      : command_{command}, logger_{logger}, output_{output} {}

  // 0, or the exit status (126, 127), already logged, if the command cannot be run.
  [[nodiscard]] int check() const;
  // Forks the command, which waits, and never runs if this tool dies before start(). IGNORED:
  // signals that it starts with ignored. ENVIRONMENT is added to ours.
  void hold(const std::vector<int>& ignored, const std::map<std::string, std::string>& environment);
  // Starts the command, or releases the held one. False: exec failed, already logged; status() has
  // the status.
  [[nodiscard]] bool start();
  // 126 or 127 when start() failed, else 0.
  [[nodiscard]] int status() const { return status_; }

  // nullptr: neither held nor started.
  [[nodiscard]] base::Child* process() const { return process_.get(); }
  // Sends SIGTERM.
  void terminate() const;
  // Waits until the command has exited, by itself or after terminate(), and never kills it: it may
  // be saving its work. It goes on if INTERRUPTED, which is asked whenever SIGNALS is readable.
  void wait_until_ended(int signals, const std::function<bool()>& interrupted) const;

 private:
  const std::vector<std::string>& command_;
  base::Logger& logger_;
  int output_;
  std::unique_ptr<base::Child> process_;
  bool held_ = false;
  int status_ = 0;
};

}  // namespace pyinject::record
