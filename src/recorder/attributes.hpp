// The attributes of this recorder's events. Pure.
#pragma once

#include "recorder/options.hpp"

#include <cstdint>

#include <linux/perf_event.h>

namespace pyinject::recorder {

// Of EVENT, disabled. MOST: kernel.perf_event_max_sample_rate; perf lowers higher frequencies to
// that, too. Each record of each event has the same id, times and numbers of tasks, in the same
// places: a reader needs no event to find them.
[[nodiscard]] perf_event_attr sampling_attributes(const NamedEvent& event, const Options& options,
                                                  std::uint64_t most);

// Of the event that records mappings, names, forks and exits, enabled.
[[nodiscard]] perf_event_attr side_band_attributes(const Options& options);

// The general registers, which a reader needs to unwind a copied stack.
[[nodiscard]] std::uint64_t registers_for_unwinding();

// PERF_FORMAT_LOST, which Debian 12's <linux/perf_event.h> lacks: how many samples of an event did
// not fit into the ring. Linux 6.0.
inline constexpr std::uint64_t kFormatLost = 1U << 4U;

// Where the time is in each sample, in bytes from its beginning.
inline constexpr std::uint64_t kTimeInSample = 32;

}  // namespace pyinject::recorder
