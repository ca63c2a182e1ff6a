// Who held the GIL or a lock while other threads waited for it. Pure.
#pragma once

#include "why/accounting.hpp"

#include <cstdint>
#include <vector>

namespace pyinject::why {

// TIME of waits of threads at WAITER_STACK fell on times when HOLDER held it.
struct Blame {
  std::uint32_t object = 0;  // of a lock
  std::uint32_t holder = 0;  // tid; 0: not known
  std::uint32_t holder_stack = 0;
  bool released = false;     // HOLDER_STACK is where it released the lock; false: where it had it
  std::uint32_t waiter = 0;  // tid
  std::uint32_t waiter_stack = 0;
  std::uint64_t time = 0;  // nanoseconds
};

// The longest first; the times add up to those of all waits.
[[nodiscard]] std::vector<Blame> blame_for_gil(const Accounts& accounts);
// A wait is charged to the owners that snapshots show during it, else to the thread that ended it:
// the one that released the lock last.
[[nodiscard]] std::vector<Blame> blame_for_locks(const Recording& recording,
                                                 const Accounts& accounts);

}  // namespace pyinject::why
