// A child process of this tool: starts it, watches it through a pidfd, ends it.
//
// For example:
//   const auto run = base::run_captured({"perf", "version"},
//                                       base::Deadline::after(std::chrono::seconds{5}));
//   if (run.status && run.status->success()) {
//     std::cout << run.output;
//   }
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
  int value = 0;  // exit status or signal number

  // As $? of a shell: the exit status, or 128 + the signal number.
  [[nodiscard]] int shell_status() const { return signalled ? 128 + value : value; }
  [[nodiscard]] bool success() const { return !signalled && value == 0; }
  bool operator==(const ExitStatus&) const = default;
};

// Decodes a wait(2) status.
[[nodiscard]] ExitStatus decode_wait_status(int status);
// "exit status 3", "killed by signal 9 (Killed)".
[[nodiscard]] std::string describe(ExitStatus status);

struct ChildOptions {
  std::vector<std::string> argv = {};  // argv[0] is looked up on PATH unless it has a slash
  bool own_group = false;              // signals of the terminal do not reach it
  bool ignore_pipe_signal = false;     // starts with SIGPIPE ignored
  int death_signal = 0;                // sent to it when this tool dies; 0: none
  int stdin_fd = -1;                   // -1: inherited
  int stdout_fd = -1;
  int stderr_fd = -1;
  std::vector<int> keep = {};     // descriptors that stay open in the child, with the same numbers
  std::vector<int> ignored = {};  // signals that the child starts with ignored
  std::map<std::string, std::string> environment = {};  // added to ours; replaces same names
  // The child does not exec ARGV before release(), and exits if this tool exits first.
  bool held = false;
};

// The child starts with the default signal mask and dispositions, except for the options above.
class Child {
 public:
  // Throws SystemError "cannot run ARGV0: ..." with exec's errno if the child cannot be started.
  explicit Child(const ChildOptions& options);
  // Kills (SIGKILL) and reaps a child that is still held or was never waited for, but not one after
  // release() or leave().
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] Pid pid() const { return pid_; }
  [[nodiscard]] int pidfd() const { return pidfd_.get(); }  // readable after the child has exited
  // Lets a held child exec ARGV. Throws as the constructor does.
  void release();
  // The child outlives this object.
  void leave() { released_ = true; }
  // Reaps the child if it has exited; later calls return the same status.
  [[nodiscard]] std::optional<ExitStatus> try_wait();
  // nullopt: still running at the deadline.
  [[nodiscard]] std::optional<ExitStatus> wait(Deadline deadline);
  // No-op if the child has exited.
  void send_signal(int signal) const;

 private:
  void start();  // lets the held child exec, and waits until it has
  void wait_for_exec();

  std::string name_;
  Pid pid_;
  UniqueFd pidfd_;
  UniqueFd hold_;     // until release()
  UniqueFd failure_;  // exec's errno; EOF if exec succeeded
  bool released_ = false;
  std::optional<ExitStatus> status_;
};

struct CapturedRun {
  std::optional<ExitStatus> status;  // nullopt: killed at the deadline
  std::string output;                // stdout and stderr mixed, the first 64 KiB
};

// Runs ARGV until it exits, with its output captured and no input. Throws SystemError as Child
// does.
[[nodiscard]] CapturedRun run_captured(const std::vector<std::string>& argv, Deadline deadline);

}  // namespace pyinject::base
