// What a perf.data says besides its records: linux, tools/perf/util/header.c, "write_..." of each
// feature.
#pragma once

#include "perfdata/input.hpp"
#include "recorder/data_file.hpp"
#include "recorder/open_events.hpp"

#include <cstdint>
#include <ctime>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pyinject::recorder {

struct RecordingFacts {
  std::span<const std::string> command_line;
  std::span<const OpenEvent> events;
  std::uint64_t first_time = 0;  // of the samples; 0: there are none
  std::uint64_t last_time = 0;
  std::optional<clockid_t> clock;
  perfdata::ClockData begin = {};  // the same moment by two clocks
  std::vector<perfdata::BuildId> build_ids = {};
};

[[nodiscard]] std::vector<FeatureContents> make_features(const RecordingFacts& facts);

// The formats of the tracepoints among EVENTS, with which `perf script` prints their fields. Empty:
// there are none, or tracefs is not readable.
[[nodiscard]] std::vector<std::byte> tracing_data(std::span<const OpenEvent> events);

}  // namespace pyinject::recorder
