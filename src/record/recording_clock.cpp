#include "record/recording_clock.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace pyinject::record {

std::optional<clockid_t> clock_by_name(const std::string& name) {
  // Names as in perf 6.1, tools/perf/util/clockid.c; case is ignored.
  constexpr std::array<std::pair<std::string_view, clockid_t>, 14> kClocks{{
      {"monotonic", CLOCK_MONOTONIC},
      {"mono", CLOCK_MONOTONIC},
      {"1", CLOCK_MONOTONIC},
      {"monotonic_raw", CLOCK_MONOTONIC_RAW},
      {"raw", CLOCK_MONOTONIC_RAW},
      {"4", CLOCK_MONOTONIC_RAW},
      {"boottime", CLOCK_BOOTTIME},
      {"boot", CLOCK_BOOTTIME},
      {"7", CLOCK_BOOTTIME},
      {"realtime", CLOCK_REALTIME},
      {"real", CLOCK_REALTIME},
      {"0", CLOCK_REALTIME},
      {"tai", CLOCK_TAI},
      {"11", CLOCK_TAI},
  }};
  std::string plain = name;
  std::ranges::transform(plain, plain.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  if (plain.starts_with("clock_")) {
    plain.erase(0, std::string_view{"clock_"}.size());
  }
  const auto* const found = std::ranges::find(kClocks, std::string_view{plain},
                                              &std::pair<std::string_view, clockid_t>::first);
  return found == kClocks.end() ? std::nullopt : std::optional{found->second};
}

// Only the kernel can read perf's own default clock.
std::optional<clockid_t> recording_clock(const perf::ParsedOptions& perf_options) {
  return clock_by_name(perf_options.clock.value_or("mono"));
}

}  // namespace pyinject::record
