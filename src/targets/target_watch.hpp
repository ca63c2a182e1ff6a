// Which targets have exited.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <chrono>
#include <vector>

#include <poll.h>

namespace pyinject::session {

// As far as it may be: a descriptor is held open for each target.
void raise_descriptor_limit();

class TargetWatch {
 public:
  // A process that has gone already counts as one that exited.
  void add(base::ProcessId id);
  [[nodiscard]] bool all_exited() const;
  [[nodiscard]] std::vector<base::Pid> running() const;
  // Looks at all, for at most SPAN while one still runs.
  [[nodiscard]] bool all_exited_within(std::chrono::milliseconds span);

  // One entry for each that still runs.
  [[nodiscard]] std::vector<pollfd> poll_entries() const;
  // Takes note of those that are readable.
  void update(const std::vector<pollfd>& entries);

 private:
  struct Watched {
    base::ProcessId id;
    base::UniqueFd pidfd;  // invalid: exited
  };
  std::vector<Watched> targets_;
};

}  // namespace pyinject::session
