// From the number that a thread of a target has in its own pid namespace to the one it has in ours.
#pragma once

#include "pyinject/base/pid.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>

namespace pyinject::python {

class ThreadNumbers {
 public:
  explicit ThreadNumbers(base::Pid process);

  // Looks which threads there are now. What is known of one that is still there is kept.
  void update();
  // What NATIVE, gettid() as the target sees it, was here at the last update; nullopt: the process
  // had no such thread.
  [[nodiscard]] std::optional<base::Tid> ours(std::uint64_t native) const;

 private:
  base::Pid process_;
  bool nested_ = false;                         // it is in a pid namespace below ours
  std::map<base::Tid, std::uint64_t> natives_;  // of each thread
  std::unordered_map<std::uint64_t, base::Tid> ours_;
};

}  // namespace pyinject::python
