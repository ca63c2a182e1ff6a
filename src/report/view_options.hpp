// What a view of a profile is about.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pyinject::report {

enum class View : std::uint8_t {
  kFunctions,
  kLines,
  kThreads,
  kProcesses,
  kTasks,
  kGil,
  kTree,
  kAnnotate,
  kWaits,
  kEvents,
  kImports,
};

// Which functions have rows: Python's, to which the time of their C and kernel functions is
// charged; only C and kernel functions; all.
enum class By : std::uint8_t { kPython, kNative, kMixed };

struct ViewOptions {
  View view = View::kFunctions;
  By by = By::kPython;
  bool by_total = false;  // order
  // Charges the time of a function elsewhere to the innermost Python function with a file below
  // this directory. Empty: to the innermost Python function.
  std::string mine{};
  // Only samples of these; empty: of all.
  std::vector<std::uint32_t> pids{};
  std::vector<std::uint32_t> tids{};
  std::string comm{};
  std::string task{};
  std::string function{};        // with this function in the stack, by its name
  std::optional<double> from{};  // seconds since the first sample
  std::optional<double> until{};
};

}  // namespace pyinject::report
