#include "report/marks.hpp"

#include "report/names.hpp"
#include "report/pair_numbers.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>
#include <utility>

namespace pyinject::report {

namespace {

constexpr std::string_view kTask = "[task ";

// False: the mark stays in the stack.
bool take_mark(const Function& function, Marks& marks) {
  const std::string_view mark = function.name;
  if (mark == "[GIL held]") {
    marks.gil = "held";
  } else if (mark == "[waiting for the GIL]") {
    marks.gil = "waiting";
  } else if (mark == "[preempted]") {
    marks.wait = "preempted";
  } else if (mark.starts_with(kTask) && mark.ends_with(']')) {
    marks.task = mark.substr(kTask.size(), mark.size() - kTask.size() - 1);
  } else {
    if (is_start_of_greenlet(function)) {
      marks.greenlet.emplace();
    } else if (marks.greenlet) {
      marks.greenlet->add_unknown();  // "[unnamed Python functions]", "[truncated: python stack]"
    }
    return false;
  }
  return true;
}

bool names_greenlet(const Function& function, const Marks& marks) {
  return marks.greenlet && marks.greenlet->open() && function.kind == Kind::kPython &&
         !is_garbage_collector(function);
}

}  // namespace

std::string Marks::task_or_greenlet() const {
  return !task.empty() || !greenlet ? task : greenlet->text();
}

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
  std::vector<std::uint32_t> kept;
  kept.reserve(frames.size());
  std::ranges::reverse(frames);
  for (const auto frame : frames) {
    const auto& function = function_of(profile, frame);
    if (names_greenlet(function, marks)) {
      marks.greenlet->add(function.name, function.file);
    }
    if (function.kind != Kind::kMark || !take_mark(function, marks)) {
      kept.push_back(frame);
    }
  }
  frames.assign(kept.rbegin(), kept.rend());
  return marks;
}

bool is_state_mark(const Function& function) {
  Marks marks;
  return function.kind == Kind::kMark && take_mark(function, marks);
}

UnmarkedStacks::UnmarkedStacks(const Profile& profile)
    : node_(profile.nodes.size()), marks_(profile.nodes.size()), collects_(profile.nodes.size()) {
  PairNumbers children;
  std::map<Marks, std::uint32_t> numbers{{Marks{}, 0}};
  for (std::size_t i = 1; i < profile.nodes.size(); ++i) {
    const auto [caller, frame] = profile.nodes[i];
    node_[i] = node_[caller];
    marks_[i] = marks_[caller];
    const auto& function = function_of(profile, frame);
    collects_[i] = collects_[caller] || is_garbage_collector(function);
    const bool is_mark = function.kind == Kind::kMark;
    bool taken = false;
    if (is_mark || names_greenlet(function, all_marks_[marks_[caller]])) {
      auto marks = all_marks_[marks_[caller]];
      if (is_mark) {
        taken = take_mark(function, marks);
      } else {
        marks.greenlet->add(function.name, function.file);
      }
      const auto [entry, fresh] =
          numbers.try_emplace(marks, static_cast<std::uint32_t>(all_marks_.size()));
      if (fresh) {
        all_marks_.push_back(std::move(marks));
      }
      marks_[i] = entry->second;
    }
    if (taken) {
      continue;
    }
    const auto [number, fresh] = children.try_emplace(node_[caller], frame, nodes_.size());
    if (fresh) {
      nodes_.push_back({.caller = node_[caller], .frame = frame});
    }
    node_[i] = number;
  }
}

}  // namespace pyinject::report
