// A process that a test starts and that cannot outlive it. Nothing in here sleeps or polls by time.
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
  std::map<std::string, std::string> env;  // added to or replacing those of this process
  std::vector<std::string> unset;          // taken away from them
  std::optional<uid_t> uid;                // also as gid, without other groups; needs root
  std::string folder;                      // empty: this process's
  std::string root;                        // of its /tmp, if that is another one
};

struct ExitStatus {
  int code = 0;    // when signal is 0
  int signal = 0;  // the one that killed it
  bool operator==(const ExitStatus&) const = default;
};

class ChildProcess {
 public:
  // ARGV[0] is looked up on PATH. Throws base::Error when it cannot be executed. stdin, stdout and
  // stderr are pipes. Pids are soon used again: a perf map of an earlier process with its number is
  // removed.
  explicit ChildProcess(const std::vector<std::string>& argv, const ChildOptions& options = {});
  ~ChildProcess();  // kills it (only it, not its own children) and reaps it
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  [[nodiscard]] base::Pid pid() const { return pid_; }

  // The next line of its stdout without the newline; nullopt at its end or at the deadline.
  [[nodiscard]] std::optional<std::string> read_line(base::Deadline deadline);
  void write(std::string_view text);
  void close_stdin() { stdin_.reset(); }
  void signal(int number) const;
  // Has it not ended yet? Reaps it when it has.
  [[nodiscard]] bool running();
  // nullopt at the deadline. May be called again after the end.
  [[nodiscard]] std::optional<ExitStatus> wait(base::Deadline deadline);

  // What came so far and read_line did not take. Read while one of the waits above waits.
  [[nodiscard]] const std::string& out() const { return out_.text; }
  [[nodiscard]] const std::string& err() const { return err_.text; }

 private:
  struct Stream {
    base::UniqueFd fd;  // closed at its end
    std::string text;
    void drain();
  };

  // Waits until there is output or it has ended; false at the deadline.
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
  std::string input;  // for its stdin, at most 64 KiB (a pipe's content)
  std::chrono::nanoseconds deadline = kPatience;
};

struct RunResult {
  ExitStatus status;
  std::string out;
  std::string err;
};

// Runs it to its end. Throws base::Error, telling its output, at the deadline.
[[nodiscard]] RunResult run(const std::vector<std::string>& argv, const RunOptions& options = {});

}  // namespace pyinject::test
