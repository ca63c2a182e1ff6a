// Tracks which targets have exited.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <chrono>
#include <vector>

#include <poll.h>

namespace pyinject::targets {

// Raises the limit as far as permitted: each target needs an open descriptor.
void raise_descriptor_limit();

class TargetWatch {
 public:
  // A process that has already exited counts.
  void add(base::ProcessId id);
  [[nodiscard]] bool all_exited() const;
  [[nodiscard]] std::vector<base::Pid> running() const;
  // Polls all; waits at most SPAN while one still runs.
  [[nodiscard]] bool all_exited_within(std::chrono::milliseconds span);

  // One entry per target that still runs.
  [[nodiscard]] std::vector<pollfd> poll_entries() const;
  // Marks targets with readable entries as exited.
  void update(const std::vector<pollfd>& entries);

 private:
  struct Watched {
    base::ProcessId id;
    base::UniqueFd pidfd;  // invalid: exited
  };
  std::vector<Watched> targets_;
};

}  // namespace pyinject::targets
