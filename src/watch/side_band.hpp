// Decodes perf's side-band records about processes.
#pragma once

#include "pyinject/watch/process_watch.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <linux/perf_event.h>

namespace pyinject::watch {

struct SideBand {
  std::uint64_t time = 0;  // CLOCK_MONOTONIC, nanoseconds
  bool lost = false;       // records are missing here; no other field is set
  ProcessEvent event;
};

// The event whose records these are. It wakes at each record, and starts enabled.
[[nodiscard]] perf_event_attr side_band_event();

// RECORD: a complete record of side_band_event(). nullopt: not about a process (threads, anonymous
// memory, other records), or damaged.
[[nodiscard]] std::optional<SideBand> decode_side_band(std::span<const std::byte> record);

// Removes the records up to NOW from HELD, sorted: each processor's records arrive in order of
// time, but earlier records of other processors may not have been read yet.
[[nodiscard]] std::vector<SideBand> take_until(std::vector<SideBand>& held, std::uint64_t now);

}  // namespace pyinject::watch
