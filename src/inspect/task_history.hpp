// For how long tasks stay in the same await, from snapshots of the same processes at several times.
// Pure.
#pragma once

#include "pyinject/inspect/snapshot.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <utility>

namespace pyinject::inspect {

class TaskHistory {
 public:
  // Sets SNAPSHOT.same_await, for the pending tasks that the snapshots before have already shown in
  // the same await: the same lines, and a future at the same address. A task that has moved in
  // between and waits there for a new future at this address is not told apart.
  void add(ProcessSnapshot& snapshot, std::chrono::nanoseconds now);

 private:
  struct Seen {
    python::AsyncTask task;
    std::chrono::nanoseconds since{};  // of the first snapshot that shows it so
  };
  std::map<base::Pid, std::map<std::uint64_t, Seen>> processes_;
};

}  // namespace pyinject::inspect
