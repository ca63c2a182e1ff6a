// Verifies that nothing at all happened to a process that does nothing by itself.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/base/remote_address.hpp"
#include "support/snapshot.hpp"

#include <map>
#include <string>
#include <vector>

namespace pyinject::test {

// The state of an idle process down to the bytes: its Snapshot; the content of all its writable
// memory; each thread's system call with arguments, stack and instruction pointer
// (/proc/PID/task/TID/syscall); and each thread's context switches, which grow when it is stopped,
// woken or made to run.
class Untouched {
 public:
  // Waits until all threads sleep or are stopped. Throws base::Error if they do not, or if the
  // process is gone. SHARED: include memory that other processes may write.
  explicit Untouched(base::Pid pid, bool shared = true);
  // The changes since then, one per line; empty: none.
  [[nodiscard]] std::vector<std::string> differences() const;

 private:
  using Threads = std::map<base::Tid, std::string>;
  using Memory = std::map<base::RemoteAddress, std::string>;  // by the start of each mapping

  [[nodiscard]] Threads threads() const;
  [[nodiscard]] Memory memory() const;

  base::Pid pid_;
  bool shared_;
  Threads threads_;
  Snapshot snapshot_;
  Memory memory_;
};

}  // namespace pyinject::test
