// A snapshot as text for people. Pure.
//
// For example:
//   if (const auto snapshot = inspect::take_snapshot(pid, &target)) {
//     std::cout << inspect::to_text(*snapshot);
//   }
#pragma once

#include "pyinject/inspect/snapshot.hpp"

#include <string>

namespace pyinject::inspect {

struct TextOptions {
  bool color = false;
  bool verbose = false;  // each kernel function, and the interpreter's file
};

// A line for the process, then one for each thread with its stack below it. Threads without Python
// functions come last. Text from the process is made printable.
[[nodiscard]] std::string to_text(const ProcessSnapshot& process, const TextOptions& options = {});

}  // namespace pyinject::inspect
