#include "report/clock.hpp"

#include "base/clock.hpp"

#include <ctime>

namespace pyinject::report {

Clock clock_of(const perfdata::Input& input) {
  Clock clock;
  for (const auto& event : input.events()) {
    if (event.attr.use_clockid != 0) {
      clock.id = event.attr.clockid;
    }
  }
  if (clock.id == CLOCK_REALTIME) {
    clock.wall_offset = 0;
  }
  const auto data = input.features().clock_data();
  if (data && clock.id && static_cast<std::uint32_t>(*clock.id) == data->clock) {
    clock.wall_offset = data->wall_time - data->clock_time;
  }
  return clock;
}

Clock monotonic_clock() {
  return {.id = CLOCK_MONOTONIC,
          .wall_offset = base::now_by(CLOCK_REALTIME) - base::now_by(CLOCK_MONOTONIC)};
}

std::optional<std::uint64_t> wall_time(const Clock& clock, std::uint64_t time) {
  return clock.wall_offset ? std::optional{time + *clock.wall_offset} : std::nullopt;
}

}  // namespace pyinject::report
