// The system call in which a thread is blocked.
//
// For example:
//   if (const auto snapshot = inspect::take_snapshot(pid, &target)) {
//     for (const auto& thread : snapshot->threads) {
//       std::cout << (thread.call ? inspect::to_string(*thread.call) : "not blocked") << '\n';
//     }
//   }
#pragma once

#include "pyinject/version.hpp"

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

// "recvfrom(fd 7: TCP 127.0.0.1:40000 -> 127.0.0.1:5432)". Not made printable.
[[nodiscard]] std::string to_string(const DescribedCall& call);

}  // namespace pyinject::inspect
