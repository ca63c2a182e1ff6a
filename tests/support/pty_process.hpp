// A process on a terminal of its own.
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
  // ARGV[0] is a path. Throws base::Error when it cannot be forked.
  explicit PtyProcess(std::vector<std::string> argv);
  ~PtyProcess();  // kills it (only it, not its own children) and reaps it
  PtyProcess(const PtyProcess&) = delete;
  PtyProcess& operator=(const PtyProcess&) = delete;

  [[nodiscard]] base::Pid pid() const { return pid_; }
  // Waits until TEXT has been seen on the terminal; false at the deadline or at its end.
  [[nodiscard]] bool read_until(std::string_view text, base::Deadline deadline);
  // All that it wrote so far, as far as it was read.
  [[nodiscard]] const std::string& screen() const { return screen_; }
  void type(std::string_view text);
  // As when its window is closed: it gets SIGHUP, and what it writes goes nowhere.
  void hang_up() { terminal_.reset(); }
  // Goes on reading. nullopt at the deadline.
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
