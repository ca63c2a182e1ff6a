// The events of a profile side by side. Pure.
#pragma once

#include "pyinject/report/profile.hpp"
#include "report/selection.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pyinject::report {

// An event with samples.
struct EventColumn {
  std::string event;
  Unit unit = Unit::kSamples;
  std::uint64_t all = 0;  // sum of the periods: nanoseconds of clocks and waits, else counts
};

struct EventAmounts {
  std::uint64_t samples = 0;  // with the function as the innermost one
  std::uint64_t self = 0;     // their periods
  std::uint64_t total = 0;    // the periods of those with it anywhere in the stack
};

struct EventRow {
  RowKey key{};                         // without a name: samples without such a function
  std::vector<EventAmounts> amounts{};  // by column
};

struct EventTable {
  std::vector<EventColumn> columns;  // CPU events in the order of the recording, then waits
  std::vector<EventRow> rows;        // by the first column
  std::optional<EventRow> others{};
};

[[nodiscard]] EventTable make_events(const Profile& profile, const ViewOptions& options);
// Instructions per cycle; nullopt: an event is missing.
[[nodiscard]] std::optional<double> ipc_of(const EventTable& table, const EventRow& row);

}  // namespace pyinject::report
