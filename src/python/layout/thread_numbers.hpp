// Maps thread ids in the target's pid namespace to those in ours.
#pragma once

#include "pyinject/base/pid.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

namespace pyinject::python {

class ThreadNumbers {
 public:
  // Of a running process.
  explicit ThreadNumbers(base::Pid process);
  // Of a process whose threads do not change. OURS: by the id that the thread itself sees.
  explicit ThreadNumbers(std::unordered_map<std::uint64_t, base::Tid> ours)
      : ours_{std::move(ours)} {}

  // Lists the current threads. Keeps what is known about those that still exist.
  void update();
  // Our tid of the thread with gettid() NATIVE in the target, at the last update; nullopt: no such
  // thread.
  [[nodiscard]] std::optional<base::Tid> ours(std::uint64_t native) const;

 private:
  std::optional<base::Pid> process_;            // nullopt: its threads do not change
  bool nested_ = false;                         // the process is in a pid namespace below ours
  std::map<base::Tid, std::uint64_t> natives_;  // per thread
  std::unordered_map<std::uint64_t, base::Tid> ours_;
};

}  // namespace pyinject::python
