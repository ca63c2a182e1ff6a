// Two recordings, function by function.
#pragma once

#include "pyinject/report/profile.hpp"
#include "report/report_text.hpp"
#include "report/tables.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace pyinject::report {

struct ChangedRow {
  std::string name;  // empty: samples without a Python function
  std::string file{};
  std::uint32_t line = 0;  // 0: unknown, or none
  Counts before{};
  Counts now{};
};

// Of an event that both recordings have. Shares of samples are compared, since the recordings may
// differ in length; times and bytes as they are.
struct Difference {
  std::string event;
  Unit unit = Unit::kSamples;
  std::uint64_t before = 0;  // the weight of all samples
  std::uint64_t now = 0;
  std::vector<ChangedRow> rows;  // the largest change of self first, or of the total
};

// BEFORE, NOW: tables of functions. A function whose file is elsewhere now is found by
// moved_functions().
[[nodiscard]] std::vector<Difference> compare(const std::vector<Table>& before,
                                              const std::vector<Table>& now, bool by_total);

[[nodiscard]] std::string to_text(const std::vector<Difference>& differences,
                                  const TextOptions& options);
[[nodiscard]] std::string to_json(const std::vector<Difference>& differences,
                                  const TextOptions& options);
[[nodiscard]] std::string to_csv(const std::vector<Difference>& differences,
                                 const TextOptions& options);

}  // namespace pyinject::report
