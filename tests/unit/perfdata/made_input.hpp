// Synthetic input files, assembled byte by byte.
#pragma once

#include "perfdata/input.hpp"
#include "pyinject/base/error.hpp"
#include "support/made_perf_data.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include <linux/perf_event.h>

namespace pyinject::perfdata {

inline constexpr std::uint64_t kTimed = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME;

// Its records have kTimed.
[[nodiscard]] inline test::MadePerfData one_event(
    std::string data = test::made_record(PERF_RECORD_LOST, 0, test::words(1, 2))) {
  test::MadePerfData made;
  made.events.push_back(test::made_event(kTimed, {10, 11}));
  made.data = std::move(data);
  return made;
}

[[nodiscard]] inline Input open_bytes(const std::string& bytes) {
  auto input = Input::open(test::memory_file(bytes), "made");
  if (const auto* const why = std::get_if<UnsupportedFile>(&input)) {
    throw base::Error{why->why};
  }
  return std::get<Input>(std::move(input));
}

}  // namespace pyinject::perfdata
