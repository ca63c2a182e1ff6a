// Describes the system call in which a thread is blocked. Pure: registers and surroundings in, text
// out.
#pragma once

#include "memory/process_memory.hpp"
#include "procfs/blocked_task.hpp"

#include <chrono>
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pyinject::inspect {

struct DescribedCall {
  long number = 0;
  std::string name;                    // "syscall_NUMBER" if the number is unknown
  std::vector<std::string> arguments;  // those that are understood
  bool all_arguments = true;           // false: ARGUMENTS are not all
  std::optional<int> descriptor;       // the one that it waits for, if there is one
  std::string file;                    // the file of that descriptor; empty: unknown
};

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

// "recvfrom(fd 7: TCP 127.0.0.1:40000 -> 127.0.0.1:5432)". Not made printable.
[[nodiscard]] std::string to_string(const DescribedCall& call);

}  // namespace pyinject::inspect
