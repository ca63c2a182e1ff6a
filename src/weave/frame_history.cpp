#include "pyinject/weave/frame_history.hpp"

#include <algorithm>
#include <optional>

namespace pyinject::weave {

namespace {

// How many of FRAMES (outermost first) are the first COUNT groups.
std::size_t frames_of_groups(const std::vector<PythonFrame>& frames, std::size_t count) {
  std::size_t groups = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    groups += frames[i].outermost ? 1 : 0;
    if (groups > count) {
      return i;
    }
  }
  return frames.size();
}

std::size_t groups_of(const std::vector<PythonFrame>& frames, std::size_t count) {
  return static_cast<std::size_t>(std::count_if(frames.begin(),
                                                frames.begin() + static_cast<std::ptrdiff_t>(count),
                                                [](const auto& frame) { return frame.outermost; }));
}

bool same_place(const PythonFrame& a, const PythonFrame& b) {
  return a.activation == b.activation && a.code == b.code && a.outermost == b.outermost;
}

}  // namespace

void FrameHistory::begin(std::uint32_t pid, std::uint32_t tid, std::vector<PythonFrame> frames,
                         bool first) {
  std::ranges::reverse(frames);
  threads_[{pid, tid}] = {.frames = std::move(frames), .observations = {}, .first = first};
}

void FrameHistory::observe(std::uint32_t pid, std::uint32_t tid, std::uint64_t time,
                           const std::vector<PythonFrame>& frames) {
  const auto found = threads_.find({pid, tid});
  if (found == threads_.end()) {
    return;
  }
  auto& thread = found->second;
  const std::size_t before =
      thread.observations.empty() ? thread.frames.size() : thread.observations.back().left;
  std::size_t left = 0;
  for (auto frame = frames.rbegin(); frame != frames.rend() && left < before; ++frame, ++left) {
    auto& known = thread.frames[left];
    if (!same_place(known, *frame)) {
      break;
    }
    known.line = frame->line;
  }
  if (!thread.observations.empty() && thread.observations.size() > 1 &&
      thread.observations.back().left == left &&
      thread.observations[thread.observations.size() - 2].left == left) {
    thread.observations.back().time = time;  // nothing new: it only goes on
    return;
  }
  thread.observations.push_back({.time = time, .left = left});
}

PythonStack FrameHistory::at(const StackQuery& query) {
  const auto found = threads_.find({query.pid, query.tid});
  if (found == threads_.end()) {
    return {};
  }
  const auto& frames = found->second.frames;
  const auto left = static_cast<std::ptrdiff_t>(left_at(found->second, query));
  PythonStack result{.frames = {frames.begin(), frames.begin() + left}};
  std::ranges::reverse(result.frames);
  return result;
}

// Between two observations the nearer one holds, unless the callchain tells that it cannot or shows
// which it is.
std::size_t FrameHistory::left_at(const Thread& thread, const StackQuery& query) {
  const auto& frames = thread.frames;
  const auto& observations = thread.observations;
  const auto after = std::ranges::lower_bound(observations, query.time, {}, &Observation::time);
  const std::size_t early = after == observations.begin() ? frames.size() : std::prev(after)->left;
  const std::size_t late = after == observations.end() ? early : after->left;
  const bool later_is_nearer = after != observations.end() &&
                               (after == observations.begin() ||
                                after->time - query.time < query.time - std::prev(after)->time);
  // Groups that there can be: those that the plain activations run, and where frames of before may
  // have trampolines, further ones.
  const std::size_t least = query.plain;
  const std::size_t most =
      (thread.first ? query.plain : query.evaluators) + (query.one_may_be_hidden ? 1 : 0);
  const auto fits = [&](std::size_t left) {
    const auto groups = groups_of(frames, left);
    return least <= groups && groups <= most;
  };
  std::size_t left = later_is_nearer ? late : early;
  const std::size_t other = later_is_nearer ? early : late;
  if (!fits(left)) {
    left = fits(other) ? other : std::min(early, frames_of_groups(frames, most));
  }
  const auto groups = groups_of(frames, left);
  if (early == late || groups == 0 || !query.frames_of) {
    return left;
  }
  // Frames of the innermost group have returned in between.
  const auto begin = std::max(late, frames_of_groups(frames, groups - 1) + 1);
  const auto end = std::min(early, frames_of_groups(frames, groups));
  for (const auto address : query.frames_of(groups - 1)) {
    for (auto count = begin; count <= end; ++count) {
      if (frames[count - 1].activation == address) {
        return count;
      }
    }
  }
  return left;
}

void FrameHistory::name(std::uint32_t pid, std::uint64_t code, CodeName name) {
  names_.insert_or_assign({pid, code}, std::move(name));
}

const CodeName* FrameHistory::name(std::uint32_t pid, std::uint64_t code) const {
  const auto found = names_.find({pid, code});
  return found == names_.end() ? nullptr : &found->second;
}

void FrameHistory::each_name(
    const std::function<void(const CodeName& name, std::uint32_t last_line)>& call) const {
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> last_lines;
  for (const auto& [task, thread] : threads_) {
    for (const auto& frame : thread.frames) {
      auto& last = last_lines[{task.first, frame.code}];
      last = std::max(last, frame.line);
    }
  }
  for (const auto& [code, name] : names_) {
    const auto last = last_lines.find(code);
    call(name, last == last_lines.end() ? 0 : last->second);
  }
}

std::vector<std::uint32_t> FrameHistory::threads(std::uint32_t pid) const {
  std::vector<std::uint32_t> result;
  for (auto at = threads_.lower_bound({pid, 0}); at != threads_.end() && at->first.first == pid;
       ++at) {
    if (at->second.observations.empty() || at->second.observations.back().left > 0) {
      result.push_back(at->first.second);
    }
  }
  return result;
}

}  // namespace pyinject::weave
