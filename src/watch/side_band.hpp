// Decodes perf's side-band records about processes.
#pragma once

#include "pyinject/watch/process_watch.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace pyinject::watch {

struct SideBand {
  std::uint64_t time = 0;  // CLOCK_MONOTONIC, nanoseconds
  bool lost = false;       // records are missing here; no other field is set
  ProcessEvent event;
};

// RECORD: a complete record of an event with sample_id_all and only PERF_SAMPLE_TIME. nullopt: not
// about a process (threads, anonymous memory, other records), or damaged.
[[nodiscard]] std::optional<SideBand> decode_side_band(std::span<const std::byte> record);

// Removes the records up to NOW from HELD, sorted: each processor's records arrive in order of
// time, but earlier records of other processors may not have been read yet.
[[nodiscard]] std::vector<SideBand> take_until(std::vector<SideBand>& held, std::uint64_t now);

}  // namespace pyinject::watch
