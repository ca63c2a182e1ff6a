// A process that a test starts and that cannot outlive the test. Nothing in here polls by time.
#pragma once

#include "pyinject/base/deadline.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "support/patience.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace pyinject::test {

inline constexpr uid_t kNobody = 65534;

struct ChildOptions {
  std::map<std::string, std::string> env;  // added to this process's environment, or replacing
  std::vector<std::string> unset;          // removed from it
  std::optional<uid_t> uid;                // also the gid, no other groups; needs root
  std::string directory;                   // working directory; empty: this process's
  std::string root;                        // root of its /tmp, if not this process's
};

// `record` chooses its engine by its rights and its targets, and most tests are about the
// trampoline: they get it by this variable if they start `record`, and do not set it themselves.
inline constexpr const char* kEngineVariable = "PYINJECT_ENGINE";
[[nodiscard]] bool starts_record(const std::vector<std::string>& argv);

struct ExitStatus {
  int code = 0;    // exit status, if signal is 0
  int signal = 0;  // the signal that killed it; 0: it exited
  bool operator==(const ExitStatus&) const = default;
};

class ChildProcess {
 public:
  // Looks up ARGV[0] on PATH. Throws base::Error if it cannot be executed. stdin, stdout and stderr
  // are pipes. Removes the perf map of an earlier process with the same pid: pids are reused soon.
  explicit ChildProcess(const std::vector<std::string>& argv, const ChildOptions& options = {});
  ~ChildProcess();  // kills it (only it, not its own children) and reaps it
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  [[nodiscard]] base::Pid pid() const { return pid_; }

  // The next line of its stdout without the newline; nullopt at end of file or at the deadline.
  [[nodiscard]] std::optional<std::string> read_line(base::Deadline deadline);
  void write(std::string_view text);
  void close_stdin() { stdin_.reset(); }
  void signal(int number) const;
  // Whether it has not exited yet. Reaps it if it has.
  [[nodiscard]] bool running();
  // nullopt at the deadline. May be called again after the exit.
  [[nodiscard]] std::optional<ExitStatus> wait(base::Deadline deadline);

  // Output received so far that read_line did not return. Read while one of the functions above
  // waits.
  [[nodiscard]] const std::string& out() const { return out_.text; }
  [[nodiscard]] const std::string& err() const { return err_.text; }

 private:
  struct Stream {
    base::UniqueFd fd;  // reset at end of file
    std::string text;
    void drain();
  };

  // Waits until there is output or the process has exited; false at the deadline.
  bool pump(base::Deadline deadline);
  bool reap();

  base::Pid pid_;
  base::UniqueFd pidfd_;
  base::UniqueFd stdin_;
  Stream out_;
  Stream err_;
  std::optional<ExitStatus> status_;
};

struct RunOptions {
  ChildOptions child;
  std::string input;  // for its stdin, at most 64 KiB (the capacity of a pipe)
  std::chrono::nanoseconds deadline = kPatience;
};

struct RunResult {
  ExitStatus status;
  std::string out;
  std::string err;
};

// Waits until it exits. Throws base::Error with its output at the deadline.
[[nodiscard]] RunResult run(const std::vector<std::string>& argv, const RunOptions& options = {});

// Waits until CHILD has printed WORDS to stderr. Throws base::Error if it does not.
void await(ChildProcess& child, std::string_view words);

// Waits for a job-control stop (SIGSTOP, SIGTSTP). False: not within kPatience, or it exits.
[[nodiscard]] bool comes_to_job_control_stop(base::Pid pid);

}  // namespace pyinject::test
