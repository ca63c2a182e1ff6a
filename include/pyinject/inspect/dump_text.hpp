// A snapshot as text for people. Pure.
//
// For example:
//   if (const auto snapshot = inspect::take_snapshot(pid, &target)) {
//     std::cout << inspect::to_text(*snapshot);
//   }
#pragma once

#include "pyinject/inspect/snapshot.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace pyinject::inspect {

struct TextOptions {
  bool color = false;
  // Each thread and task, each kernel function, whole paths, and the interpreter's file.
  bool verbose = false;
  // The line LINE of the source FILE of a Python function, without white space around it; empty:
  // none is shown. Not set: none at all.
  std::function<std::string(const std::string& file, std::uint32_t line)> source_line = {};
};

// A line for the process, then one for each thread with its stack below it, each function with the
// line of its source and its variables, as far as the snapshot and OPTIONS have them; threads, and
// tasks, that do the same in one. Threads that run, or wait for the GIL or a lock that another one
// has, come first, those without Python functions last. Text from the process is made printable.
[[nodiscard]] std::string to_text(const ProcessSnapshot& process, const TextOptions& options = {});

}  // namespace pyinject::inspect
