#include "report/keep_event.hpp"

#include <algorithm>
#include <utility>

namespace pyinject::report {

bool keep_event(Profile& profile, std::string_view name) {
  const auto found = std::ranges::find(profile.events, name, &Event::name);
  if (found == profile.events.end()) {
    return false;
  }
  const auto number = found - profile.events.begin();
  std::erase_if(profile.samples, [&](const Sample& sample) { return sample.event != number; });
  for (auto& sample : profile.samples) {
    sample.event = 0;
  }
  auto event = std::move(*found);
  profile.events.clear();
  profile.events.push_back(std::move(event));
  return true;
}

}  // namespace pyinject::report
