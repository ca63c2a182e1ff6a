// Maps thread ids in the target's pid namespace to those in ours.
#pragma once

#include "memory/process_memory.hpp"
#include "pyinject/base/pid.hpp"
#include "python/layout/runtime_view.hpp"

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
  // Our tid of the thread that STATE belongs to. CPython is not told of a fork in C (uWSGI's
  // workers, daemon()): then the state of the thread that survives has its parent's native id, and
  // is known by its thread pointer. At most 1024 such states are looked at for each update().
  [[nodiscard]] std::optional<base::Tid> ours(const memory::MemoryReader& memory,
                                              const ThreadState& state);

 private:
  std::optional<base::Pid> process_;            // nullopt: its threads do not change
  bool nested_ = false;                         // the process is in a pid namespace below ours
  std::map<base::Tid, std::uint64_t> natives_;  // per thread
  std::unordered_map<std::uint64_t, base::Tid> ours_;
  int left_to_look_at_ = 0;
};

}  // namespace pyinject::python
