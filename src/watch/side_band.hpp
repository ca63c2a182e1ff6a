// What perf's side-band records tell of processes.
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
  bool lost = false;       // records are missing here; nothing else is said then
  ProcessEvent event;
};

// RECORD: one whole, of an event with sample_id_all and PERF_SAMPLE_TIME alone. nullopt: it says
// nothing of a process (threads, anonymous memory, other records), or is damaged.
[[nodiscard]] std::optional<SideBand> decode_side_band(std::span<const std::byte> record);

// Takes those that happened until NOW out of HELD and sorts them: each processor's records come
// in order of time, but others' records of that time may not have been read yet when later ones
// are.
[[nodiscard]] std::vector<SideBand> take_until(std::vector<SideBand>& held, std::uint64_t now);

}  // namespace pyinject::watch
