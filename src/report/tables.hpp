// Tables of a profile: how the samples of an event are distributed over functions, lines, threads,
// ... Pure: values in, values out.
#pragma once

#include "pyinject/report/profile.hpp"
#include "report/machinery.hpp"
#include "report/view_options.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pyinject::report {

// Sums of the weights of samples: their number, or nanoseconds of waits.
struct Counts {
  std::uint64_t python = 0;  // the function itself was interpreted
  std::uint64_t native = 0;  // in C functions that it called
  std::uint64_t kernel = 0;
  std::uint64_t total = 0;  // the function is anywhere in the stack; each sample once

  [[nodiscard]] std::uint64_t self() const { return python + native + kernel; }
  void add(Leaf leaf, std::uint64_t weight);
};

// A function that held the GIL while another one waited for it.
struct Holder {
  std::string name;
  std::string file{};
  std::uint64_t waited = 0;  // nanoseconds of these waits
};

struct Row {
  std::string name;
  std::string file{};
  std::uint32_t line = 0;  // 0: unknown, or none
  // kGil: held, waited for.
  Counts counts{};
  std::vector<Holder> holders{};  // kGil, of waits; the longest first
};

struct Table {
  std::string event;
  Unit unit = Unit::kSamples;
  std::uint64_t weight = 0;     // of all samples
  std::uint64_t undecided = 0;  // of those in NATIVE that may be in PYTHON (Leaf::kUndecided)
  std::vector<Row> rows;        // in order
  std::optional<Row> others{};  // kPython: samples without a Python function
};

// Whether the rows of VIEW are functions, or lines or groups of them: they have totals.
[[nodiscard]] bool is_of_functions(View view);

// A table for each event that has samples; waits come last.
[[nodiscard]] std::vector<Table> make_tables(const Profile& profile, const ViewOptions& options);

}  // namespace pyinject::report
