#include "report/marks.hpp"

#include <algorithm>
#include <string_view>

namespace pyinject::report {

namespace {

constexpr std::string_view kTask = "[task ";

// False: MARK is of another kind.
bool take_mark(std::string_view mark, Marks& marks) {
  if (mark == "[GIL held]") {
    marks.gil = "held";
  } else if (mark == "[waiting for the GIL]") {
    marks.gil = "waiting";
  } else if (mark == "[preempted]") {
    marks.wait = "preempted";
  } else if (mark.starts_with(kTask) && mark.ends_with(']')) {
    marks.task = mark.substr(kTask.size(), mark.size() - kTask.size() - 1);
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::vector<std::uint32_t> frames_of(const Profile& profile, std::uint32_t stack) {
  std::vector<std::uint32_t> frames;
  for (; stack != 0; stack = profile.nodes[stack].caller) {
    frames.push_back(profile.nodes[stack].frame);
  }
  return frames;
}

const Function& function_of(const Profile& profile, std::uint32_t frame) {
  return profile.functions[profile.frames[frame].function];
}

Marks take_marks(const Profile& profile, std::vector<std::uint32_t>& frames) {
  Marks marks;
  std::erase_if(frames, [&](std::uint32_t frame) {
    const auto& function = function_of(profile, frame);
    return function.kind == Kind::kMark && take_mark(function.name, marks);
  });
  return marks;
}

}  // namespace pyinject::report
