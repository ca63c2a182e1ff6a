// That nothing at all has happened to a process that does nothing by itself.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/base/remote_address.hpp"
#include "support/snapshot.hpp"

#include <map>
#include <string>
#include <vector>

namespace pyinject::test {

// What an idle process is, down to the bytes: beside its Snapshot the content of all memory that it
// may write, each thread's system call with its arguments, stack and instruction pointer
// (/proc/PID/task/TID/syscall), and how often each thread gave way: one that was stopped, woken or
// made to run anything has done so.
class Untouched {
 public:
  // Waits until all its threads sleep or are stopped. Throws base::Error when they do not come to
  // that, or the process has gone.
  // SHARED: also memory that other processes may write.
  explicit Untouched(base::Pid pid, bool shared = true);
  // What is different now, a line each; empty when there is nothing.
  [[nodiscard]] std::vector<std::string> differences() const;

 private:
  using Threads = std::map<base::Tid, std::string>;
  using Memory = std::map<base::RemoteAddress, std::string>;  // by the begin of each mapping

  [[nodiscard]] Threads threads() const;
  [[nodiscard]] Memory memory() const;

  base::Pid pid_;
  bool shared_;
  Threads threads_;
  Snapshot snapshot_;
  Memory memory_;
};

}  // namespace pyinject::test
