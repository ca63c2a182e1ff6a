// A process on its own terminal.
#pragma once

#include "pyinject/base/deadline.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "support/child_process.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::test {

class PtyProcess {
 public:
  // ARGV[0] is a path. Throws base::Error if fork fails.
  explicit PtyProcess(std::vector<std::string> argv);
  ~PtyProcess();  // kills it (only it, not its own children) and reaps it
  PtyProcess(const PtyProcess&) = delete;
  PtyProcess& operator=(const PtyProcess&) = delete;

  [[nodiscard]] base::Pid pid() const { return pid_; }
  // Waits until TEXT has appeared on the terminal; false at the deadline or when the terminal
  // closes.
  [[nodiscard]] bool read_until(std::string_view text, base::Deadline deadline);
  // Its output read so far.
  [[nodiscard]] const std::string& screen() const { return screen_; }
  void type(std::string_view text);
  // Simulates a closed terminal window: the process gets SIGHUP, and its output goes nowhere.
  void hang_up() { terminal_.reset(); }
  // Keeps reading while it waits. nullopt at the deadline.
  [[nodiscard]] std::optional<ExitStatus> wait(base::Deadline deadline);

 private:
  void look(base::Deadline deadline);
  void drain();

  base::Pid pid_;
  base::UniqueFd pidfd_;
  base::UniqueFd terminal_;
  std::string screen_;
  std::optional<ExitStatus> status_;
};

}  // namespace pyinject::test
