#include "weave/frame_history.hpp"

#include "weave/synthetic_names.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

namespace pyinject::weave {

namespace {

// Number of FRAMES (outermost first) in the first COUNT groups.
std::size_t frames_of_groups(const std::vector<sample::Frame>& frames, std::size_t count) {
  std::size_t groups = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    groups += frames[i].outermost ? 1 : 0;
    if (groups > count) {
      return i;
    }
  }
  return frames.size();
}

std::size_t groups_of(const std::vector<sample::Frame>& frames, std::size_t count) {
  return static_cast<std::size_t>(std::count_if(frames.begin(),
                                                frames.begin() + static_cast<std::ptrdiff_t>(count),
                                                [](const auto& frame) { return frame.outermost; }));
}

bool same_place(const sample::Frame& a, const sample::Frame& b) {
  return a.activation == b.activation && a.code == b.code && a.outermost == b.outermost;
}

// Number of outermost frames that are equal in FIRST (outermost first) and LATER (innermost first).
std::size_t shared_frames(const std::vector<sample::Frame>& first,
                          const std::vector<sample::Frame>& later) {
  const auto differing =
      std::mismatch(first.begin(), first.end(), later.rbegin(), later.rend(), same_place);
  return static_cast<std::size_t>(differing.first - first.begin());
}

// The frames of FRAMES (outermost first) that the activations without trampolines run, as far as
// the C stack proves it.
std::vector<sample::Frame> proven_frames(const std::vector<sample::Frame>& frames,
                                         const StackQuery& query) {
  const bool grouped = !frames.empty() && frames.front().outermost;
  std::vector<sample::Frame> proven;
  auto group = frames.begin();
  for (std::size_t n = 0; n < query.plain && group != frames.end(); ++n) {
    const auto next =
        std::find_if(group + 1, frames.end(), [](const auto& frame) { return frame.outermost; });
    const auto run_by = query.frames_of(n);
    const auto runs = std::find_if(group, next, [&run_by](const auto& frame) {
      return std::ranges::count(run_by, frame.activation) != 0;
    });
    if (runs == next) {
      break;
    }
    const auto first = proven.size();
    proven.insert(proven.end(), group, runs + 1);
    proven[first].outermost = true;
    group = grouped ? next : runs + 1;
  }
  return proven;
}

}  // namespace

void FrameHistory::begin(std::uint32_t pid, std::uint32_t tid, std::vector<sample::Frame> frames,
                         bool first, std::uint64_t begun) {
  std::ranges::reverse(frames);
  const auto count = frames.size();
  threads_[{pid, tid}].push_back({.frames = std::move(frames),
                                  .observations = {},
                                  .lines = std::vector<std::vector<LineSince>>(count),
                                  .first = first,
                                  .begun = begun,
                                  .others = {},
                                  .other_of = {}});
}

FrameHistory::Thread* FrameHistory::latest(std::uint32_t pid, std::uint32_t tid) {
  const auto found = threads_.find({pid, tid});
  return found == threads_.end() ? nullptr : &found->second.back();
}

const FrameHistory::Thread* FrameHistory::latest(std::uint32_t pid, std::uint32_t tid) const {
  const auto found = threads_.find({pid, tid});
  return found == threads_.end() ? nullptr : &found->second.back();
}

bool FrameHistory::is_other(std::uint32_t pid, std::uint32_t tid,
                            const std::vector<sample::Frame>& frames) const {
  const auto* const thread = latest(pid, tid);
  return thread != nullptr && !thread->frames.empty() && !frames.empty() &&
         !same_place(thread->frames.front(), frames.back());
}

void FrameHistory::keep_other(std::uint32_t pid, Thread& thread,
                              const std::vector<sample::Frame>& frames) {
  if (thread.others.size() >= kMostOthers) {
    return;
  }
  const auto count = static_cast<std::ptrdiff_t>(std::min(frames.size(), kMostOtherFrames));
  std::vector<sample::Frame> other{frames.rbegin(), frames.rbegin() + count};
  const bool own = begins_thread(pid, other) && !begins_thread(pid, thread.frames);
  if (!own && thread.others.contains(frames.back().activation)) {
    return;
  }
  if (own) {
    thread.frames.swap(other);
    thread.observations.clear();
    thread.lines.assign(thread.frames.size(), {});
  }
  keep(thread, std::move(other));
}

void FrameHistory::keep(Thread& thread, std::vector<sample::Frame> other) {
  const auto outermost = other.front().activation;
  for (const auto& frame : other) {
    thread.other_of.emplace(frame.activation, outermost);
  }
  thread.others.emplace(outermost, std::move(other));
}

void FrameHistory::keep_suspended(std::uint32_t pid, std::uint32_t tid,
                                  const std::vector<sample::Frame>& frames) {
  auto* const thread = latest(pid, tid);
  if (thread == nullptr || frames.empty() || thread->others.size() >= kMostOthers ||
      thread->others.contains(frames.back().activation)) {
    return;
  }
  const auto count = static_cast<std::ptrdiff_t>(std::min(frames.size(), kMostOtherFrames));
  keep(*thread, {frames.rbegin(), frames.rbegin() + count});
}

const FrameHistory::Thread* FrameHistory::thread_at(const StackQuery& query) const {
  const auto found = threads_.find({query.pid, query.tid});
  if (found == threads_.end()) {
    return nullptr;
  }
  const auto& all = found->second;
  const auto later = std::ranges::upper_bound(all, query.time, {}, &Thread::begun);
  if (later == all.begin()) {
    return nullptr;
  }
  const auto& thread = *std::prev(later);
  return thread.begun == 0 || thread.begun >= query.program_since ? &thread : nullptr;
}

void FrameHistory::observe(std::uint32_t pid, std::uint32_t tid, std::uint64_t time,
                           const std::vector<sample::Frame>& frames, bool inner_unknown) {
  auto* const found = latest(pid, tid);
  if (found == nullptr) {
    return;
  }
  auto& thread = *found;
  if (greenlets_.contains(pid) && is_other(pid, tid, frames)) {
    keep_other(pid, thread, frames);
    return;
  }
  auto& all = thread.observations;
  const std::size_t before = all.empty() ? thread.frames.size() : all.back().left;
  if (inner_unknown && shared_frames(thread.frames, frames) < before) {
    return;
  }
  Observation now{.time = time};
  for (auto frame = frames.rbegin(); frame != frames.rend() && now.left < before;
       ++frame, ++now.left) {
    if (!same_place(thread.frames[now.left], *frame)) {
      break;
    }
    if (frame->line != line_at(thread, now.left, all.size())) {
      thread.lines[now.left].push_back({.observation = all.size(), .line = frame->line});
      now.new_lines = true;
    }
  }
  if (all.size() > 1 && !now.new_lines && !all.back().new_lines && all.back().left == now.left &&
      all[all.size() - 2].left == now.left) {
    all.back().time = time;  // no change: extend the last observation
    return;
  }
  all.push_back(now);
}

void FrameHistory::extend(std::uint32_t pid, std::uint32_t tid, std::uint64_t time,
                          const std::vector<sample::Frame>& frames, bool inner_unknown) {
  auto* const thread = latest(pid, tid);
  const auto known = thread == nullptr ? 0 : thread->frames.size();
  if (thread != nullptr && !(greenlets_.contains(pid) && is_other(pid, tid, frames)) &&
      (thread->observations.empty() || thread->observations.back().left == known) &&
      shared_frames(thread->frames, frames) == known && frames.size() > known) {
    thread->frames.insert(thread->frames.end(),
                          frames.rbegin() + static_cast<std::ptrdiff_t>(known), frames.rend());
    thread->lines.resize(thread->frames.size());
    for (auto& observation : thread->observations) {
      observation.left = static_cast<std::uint32_t>(thread->frames.size());
    }
  }
  observe(pid, tid, time, frames, inner_unknown);
}

sample::Stack FrameHistory::at(const StackQuery& query) {
  const auto* const found = thread_at(query);
  if (found == nullptr) {
    return {};
  }
  return query.greenlets || greenlets_.contains(query.pid) ? at_greenlet(*found, query)
                                                           : at_thread(*found, query);
}

// The frames of the greenlet that runs. Without proof, only those of the thread itself: they are
// known by their outermost function.
sample::Stack FrameHistory::at_greenlet(const Thread& thread, const StackQuery& query) const {
  if (query.outer_missing) {
    const auto run_by =
        query.frames_of && query.evaluators > 0 ? query.frames_of(0) : std::vector<std::uint64_t>{};
    const bool runs = std::ranges::any_of(thread.frames, [&run_by](const auto& frame) {
      return std::ranges::count(run_by, frame.activation) != 0;
    });
    return runs ? at_thread(thread, query) : sample::Stack{};
  }
  if (query.frames_of) {
    auto proven = proven_frames(thread.frames, query);
    const auto run_by =
        proven.empty() && query.plain > 0 ? query.frames_of(0) : std::vector<std::uint64_t>{};
    for (auto address = run_by.begin(); proven.empty() && address != run_by.end(); ++address) {
      if (const auto other = thread.other_of.find(*address); other != thread.other_of.end()) {
        proven = proven_frames(thread.others.at(other->second), query);
      }
    }
    if (!proven.empty()) {
      std::ranges::reverse(proven);
      return {.frames = std::move(proven)};
    }
  }
  return !query.in_greenlet && begins_thread(query.pid, thread.frames) ? at_thread(thread, query)
                                                                       : sample::Stack{};
}

bool FrameHistory::begins_thread(std::uint32_t pid,
                                 const std::vector<sample::Frame>& frames) const {
  constexpr auto kFirst =
      std::to_array<std::string_view>({"<module>", "_run_module_as_main", "Thread._bootstrap"});
  const auto* const code = frames.empty() ? nullptr : name(pid, frames.front().code);
  return code != nullptr && std::ranges::count(kFirst, code->qualname) != 0;
}

sample::Stack FrameHistory::at_thread(const Thread& thread, const StackQuery& query) const {
  const auto moment = moment_of(thread, query);
  sample::Stack result;
  for (std::size_t i = moment.left; i-- > 0;) {
    result.frames.push_back(thread.frames[i]);
    result.frames.back().line = line_at(thread, i, moment.observations);
  }
  return result;
}

// The line of FRAME after the first OBSERVATIONS observations.
std::uint32_t FrameHistory::line_at(const Thread& thread, std::size_t frame,
                                    std::size_t observations) {
  const auto& lines = thread.lines[frame];
  const auto later = std::ranges::lower_bound(lines, observations, {}, &LineSince::observation);
  return later == lines.begin() ? thread.frames[frame].line : std::prev(later)->line;
}

std::size_t FrameHistory::agreeing_groups(const std::vector<sample::Frame>& frames,
                                          std::size_t left, const StackQuery& query) const {
  std::size_t groups = 0;
  for (std::size_t i = 0; i < left; ++i) {
    if (!frames[i].outermost) {
      continue;
    }
    if (query.trampoline_of && groups < query.evaluators) {
      const auto* const code = name(query.pid, frames[i].code);
      const auto trampoline = query.trampoline_of(groups);
      if (code != nullptr && !trampoline.empty() && named_code(*code).name != trampoline) {
        break;
      }
    }
    ++groups;
  }
  return groups;
}

// Between two observations the nearer one is used, unless the callchain excludes it or decides
// between them.
FrameHistory::Moment FrameHistory::moment_of(const Thread& thread, const StackQuery& query) const {
  const auto& frames = thread.frames;
  const auto& observations = thread.observations;
  const auto after = std::ranges::lower_bound(observations, query.time, {}, &Observation::time);
  const auto number = static_cast<std::size_t>(after - observations.begin());
  const std::size_t early = after == observations.begin() ? frames.size() : std::prev(after)->left;
  const std::size_t late = after == observations.end() ? early : after->left;
  const bool later_is_nearer = after != observations.end() &&
                               (after == observations.begin() ||
                                after->time - query.time < query.time - std::prev(after)->time);
  if (query.outer_missing) {  // the possible number of groups is unknown
    return later_is_nearer ? Moment{.left = late, .observations = number + 1}
                           : Moment{.left = early, .observations = number};
  }
  // Possible groups: those run by the plain activations, and more if frames from before the attach
  // may have trampolines.
  const std::size_t least = query.plain;
  std::size_t most =
      (thread.first ? query.plain : query.evaluators) + (query.one_may_be_hidden ? 1 : 0);
  if (early != late || after == observations.end()) {
    most = std::min(most, agreeing_groups(frames, early, query));
  }
  const auto fits = [&](std::size_t left) {
    const auto groups = groups_of(frames, left);
    return least <= groups && groups <= most;
  };
  Moment nearer{.left = early, .observations = number};
  Moment other{.left = late, .observations = number + 1};
  if (later_is_nearer) {
    std::swap(nearer, other);
  }
  auto moment = fits(nearer.left) || !fits(other.left) ? nearer : other;
  if (!fits(moment.left)) {
    moment.left = std::min(early, frames_of_groups(frames, most));
  }
  const auto groups = groups_of(frames, moment.left);
  if (early == late || groups == 0 || !query.frames_of) {
    return moment;
  }
  // Frames of the innermost group have returned in between.
  const auto begin = std::max(late, frames_of_groups(frames, groups - 1) + 1);
  const auto end = std::min(early, frames_of_groups(frames, groups));
  for (const auto address : query.frames_of(groups - 1)) {
    for (auto count = begin; count <= end; ++count) {
      if (frames[count - 1].activation == address) {
        moment.left = count;
        return moment;
      }
    }
  }
  return moment;
}

void FrameHistory::name(std::uint32_t pid, sample::Code code) {
  const std::pair key{pid, code.number};
  names_.insert_or_assign(key, std::move(code));
}

const sample::Code* FrameHistory::name(std::uint32_t pid, std::uint64_t code) const {
  const auto found = names_.find({pid, code});
  return found == names_.end() ? nullptr : &found->second;
}

void FrameHistory::each_name(
    const std::function<void(const sample::Code& name, std::uint32_t last_line)>& call) const {
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> last_lines;
  for (const auto& [task, lives] : threads_) {
    for (const auto& thread : lives) {
      for (std::size_t i = 0; i < thread.frames.size(); ++i) {
        auto& last = last_lines[{task.first, thread.frames[i].code}];
        last = std::max(last, thread.frames[i].line);
        for (const auto& since : thread.lines[i]) {
          last = std::max(last, since.line);
        }
      }
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
    const auto& observations = at->second.back().observations;
    if (greenlets_.contains(pid) || observations.empty() || observations.back().left > 0) {
      result.push_back(at->first.second);
    }
  }
  return result;
}

}  // namespace pyinject::weave
