// Describes the system call in which a thread is blocked. Pure: registers and surroundings in, text
// out.
#pragma once

#include "memory/process_memory.hpp"
#include "procfs/blocked_task.hpp"
#include "pyinject/inspect/blocked_in.hpp"

#include <chrono>
#include <ctime>
#include <functional>
#include <optional>
#include <string>

namespace pyinject::inspect {

// Where the arguments lead to.
struct CallSurroundings {
  const memory::MemoryReader& memory;
  // Describes the open file of a descriptor; empty: unknown.
  std::function<std::string(int)> file;
  // The time of a clock in the thread's own view. nullopt: unknown.
  std::function<std::optional<std::chrono::nanoseconds>(clockid_t)> now;
};

// Nothing in CALL or in the memory is trusted.
[[nodiscard]] DescribedCall describe_call(const procfs::BlockedCall& call,
                                          const CallSurroundings& surroundings);

}  // namespace pyinject::inspect
