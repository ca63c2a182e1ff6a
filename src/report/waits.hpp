// What threads waited for. Pure.
#pragma once

#include "pyinject/report/profile.hpp"
#include "report/selection.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace pyinject::report {

// Waits for the same thing at the same place.
struct WaitRow {
  std::string what;    // "GIL", "CPU", "futex", "sleep", "network", ...; "other"
  std::string reason;  // the innermost kernel function that is not the scheduler's; may be empty
  RowKey key{};        // the function and line; without a name: no such function
  std::uint64_t count = 0;
  std::uint64_t waited = 0;  // nanoseconds
};

struct WaitTable {
  std::uint64_t waited = 0;  // nanoseconds, of all rows
  std::uint64_t count = 0;
  std::vector<WaitRow> rows;  // the longest first
};

// WaitRow::what of the stack with FACTS.
[[nodiscard]] std::string awaited_by(const Profile& profile, const StackFacts& facts);

[[nodiscard]] WaitTable make_waits(const Profile& profile, const ViewOptions& options);

}  // namespace pyinject::report
