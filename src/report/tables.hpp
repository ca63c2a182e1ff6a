// Tables of a profile: how the samples of an event are distributed over functions, lines, threads,
// ... Pure: values in, values out.
#pragma once

#include "report/profile.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::report {

enum class View : std::uint8_t { kFunctions, kLines, kThreads, kProcesses, kTasks, kGil };
// Which functions have rows: Python's, to which the time of their C and kernel functions is
// charged; only C and kernel functions; all.
enum class By : std::uint8_t { kPython, kNative, kMixed };

struct TableOptions {
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

// Sums of the weights of samples: their number, or nanoseconds of waits.
struct Counts {
  std::uint64_t python = 0;  // the function itself was interpreted
  std::uint64_t native = 0;  // in C functions that it called
  std::uint64_t kernel = 0;
  std::uint64_t total = 0;  // the function is anywhere in the stack; each sample once

  [[nodiscard]] std::uint64_t self() const { return python + native + kernel; }
};

struct Row {
  std::string name;
  std::string file{};
  std::uint32_t line = 0;  // 0: unknown, or none
  // kGil: held, waited for.
  Counts counts{};
};

struct Table {
  std::string event;
  Unit unit = Unit::kSamples;
  std::uint64_t weight = 0;     // of all samples
  std::vector<Row> rows;        // in order
  std::optional<Row> others{};  // kPython: samples without a Python function
};

// A table for each event that has samples; waits come last.
[[nodiscard]] std::vector<Table> make_tables(const Profile& profile, const TableOptions& options);

}  // namespace pyinject::report
