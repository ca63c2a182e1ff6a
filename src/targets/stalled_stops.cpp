#include "targets/stalled_stops.hpp"

namespace pyinject::targets {

namespace {
constexpr int kMostLooks = 5;
}

bool StalledStops::look(const tracee::OpenStops& now) {
  bool stalled = false;
  for (std::size_t i = 0; i < now.size(); ++i) {
    times_[i] = now[i] != 0 && now[i] == last_[i] ? times_[i] + 1 : 0;
    stalled = stalled || times_[i] >= kMostLooks;
  }
  last_ = now;
  return stalled;
}

}  // namespace pyinject::targets
