// A child process of this tool: started, watched through a pidfd, ended.
#pragma once

#include "pyinject/base/deadline.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace pyinject::base {

// How a child ended.
struct ExitStatus {
  bool signalled = false;
  int value = 0;  // exit status, or the number of the signal

  // As a shell's $? : the exit status, or 128 + the signal's number.
  [[nodiscard]] int shell_status() const { return signalled ? 128 + value : value; }
  [[nodiscard]] bool success() const { return !signalled && value == 0; }
  bool operator==(const ExitStatus&) const = default;
};

// Takes a wait(2) status apart.
[[nodiscard]] ExitStatus decode_wait_status(int status);
// "exit status 3", "killed by signal 9 (Killed)".
[[nodiscard]] std::string describe(ExitStatus status);

struct ChildOptions {
  std::vector<std::string> argv = {};  // argv[0] is looked up on PATH unless it has a slash
  bool own_group = false;              // the terminal's signals do not reach it
  bool ignore_pipe_signal = false;     // it starts with SIGPIPE ignored
  int death_signal = 0;                // sent to it when this tool dies; 0: none
  int stdin_fd = -1;                   // -1: inherited
  int stdout_fd = -1;
  int stderr_fd = -1;
  std::vector<int> keep = {};     // descriptors that stay open in it, under their numbers
  std::vector<int> ignored = {};  // signals that it starts with ignored
  std::map<std::string, std::string> environment = {};  // added to ours, or in the place of ours
  // It does not execute ARGV before release(), and ends when this tool ends before that.
  bool held = false;
};

// Signal mask and dispositions of the child are the default ones but for what is asked for.
class Child {
 public:
  // Throws SystemError "cannot run ARGV0: ..." with exec's errno when it cannot be started.
  explicit Child(const ChildOptions& options);
  // One that was never waited for is killed (SIGKILL) and reaped; one that was released is left to
  // itself.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] Pid pid() const { return pid_; }
  [[nodiscard]] int pidfd() const { return pidfd_.get(); }  // readable when it has ended
  // Of one that is held: it executes ARGV now. Throws as the constructor does.
  void release();
  // Reaps it when it has ended; afterwards answers the same for ever.
  [[nodiscard]] std::optional<ExitStatus> try_wait();
  // nullopt: still running at the deadline.
  [[nodiscard]] std::optional<ExitStatus> wait(Deadline deadline);
  // Nothing happens when it has ended.
  void send_signal(int signal) const;

 private:
  void wait_for_exec();

  std::string name_;
  Pid pid_;
  UniqueFd pidfd_;
  UniqueFd hold_;     // until release()
  UniqueFd failure_;  // exec's errno, or its end
  bool released_ = false;
  std::optional<ExitStatus> status_;
};

struct CapturedRun {
  std::optional<ExitStatus> status;  // nullopt: killed at the deadline
  std::string output;                // stdout and stderr mixed, the first 64 KiB
};

// Runs ARGV to its end with its output captured and no input. Throws SystemError as Child does.
[[nodiscard]] CapturedRun run_captured(const std::vector<std::string>& argv, Deadline deadline);

}  // namespace pyinject::base
