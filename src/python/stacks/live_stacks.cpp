#include "python/stacks/live_stacks.hpp"

#include "procfs/blocked_task.hpp"
#include "procfs/usage.hpp"
#include "pyinject/base/cancellation.hpp"
#include "pyinject/base/deadline.hpp"
#include "python/layout/frame_reading.hpp"
#include "python/stacks/stack_assembly.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

namespace pyinject::python {

namespace {

constexpr std::size_t kMostRemembered = std::size_t{32} << 20U;  // bytes
constexpr int kMostUpdates = 16;                                 // in one round

template <typename Value>
void make_unique(std::vector<Value>& values) {
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace

LiveStacks::LiveStacks(std::unique_ptr<memory::MemoryReader> memory, ThreadNumbers numbers,
                       const RuntimeLayout& layout, base::RemoteAddress runtime,
                       base::RemoteAddress code_type)
    : memory_{std::move(memory)},
      layout_{layout},
      pages_{*memory_},
      codes_{*memory_, layout.stack, code_type},
      threads_{*memory_, layout_, runtime, std::move(numbers)} {}

void LiveStacks::update() {
  const auto made = threads_.interpreters_made();
  losses_.interpreters = std::max<std::uint64_t>(losses_.interpreters, threads_.update());
  if (threads_.interpreters_made() != made) {
    codes_.forget();
  }
  remembered_ = 0;
  for (const auto& state : threads_.threads()) {
    remembered_ += state.snapshot.bytes.size();
  }
}

std::vector<LiveStacks::States> LiveStacks::by_thread() {
  std::vector<States> threads;
  for (States left = threads_.threads(); !left.empty();) {
    threads.push_back(states_of(left.front().tid));
    left = left.subspan(threads.back().size());
  }
  return threads;
}

LiveStacks::States LiveStacks::states_of(base::Tid tid) {
  // clang 14 does not compile subranges, which equal_range returns.
  auto& all = threads_.threads();
  return {std::ranges::lower_bound(all, tid, {}, &KnownThread::tid),
          std::ranges::upper_bound(all, tid, {}, &KnownThread::tid)};
}

void LiveStacks::begin() {
  unread_.clear();
  codes_.begin_round();
}

std::vector<ThreadStack> LiveStacks::read() {
  begin();
  update();
  return read_threads(by_thread());
}

std::vector<ThreadStack> LiveStacks::read(std::span<const base::Tid> tids) {
  begin();
  if (threads_.has_new()) {
    update();
  }
  std::vector<States> threads;
  for (const auto tid : std::set<base::Tid>{tids.begin(), tids.end()}) {
    if (const auto states = states_of(tid); !states.empty()) {
      threads.push_back(states);
    }
  }
  return read_threads(std::move(threads));
}

std::vector<ThreadStack> LiveStacks::read_threads(std::vector<States> threads) {
  const base::Cancellation patience{base::Deadline::after(patience_)};
  int updates_left = kMostUpdates;
  auto stacks = take_unchanged(threads);
  std::vector<base::Tid> changed;
  changed.reserve(threads.size());
  for (const auto states : threads) {
    changed.push_back(states.front().tid);
  }
  for (const auto tid : changed) {
    bool read = false;
    while (!read && !patience.stopped()) {
      read = read_thread(states_of(tid), stacks);
      if (!read && updates_left-- == 0) {
        break;
      }
      if (!read) {
        update();
      }
    }
    if (!read) {
      ++losses_.changed;
      unread_.push_back(tid);
    }
  }
  return stacks;
}

std::vector<ThreadStack> LiveStacks::take_unchanged(std::vector<States>& threads) {
  std::size_t size = 0;
  for (const auto states : threads) {
    for (const auto& state : states) {
      size += state.snapshot.bytes.size();
    }
  }
  std::vector<std::byte> now(size);
  std::vector<memory::ReadPiece> pieces;
  auto left = std::span{now};
  for (const auto states : threads) {
    for (const auto& state : states) {
      for (const auto& range : state.snapshot.ranges) {
        pieces.push_back({.from = range.begin, .into = left.first(range.size)});
        left = left.subspan(range.size);
      }
    }
  }
  memory_->read_each(pieces);
  // Must hold for all states of a thread and for all their code objects.
  std::vector<base::RemoteAddress> codes;
  auto piece = pieces.cbegin();
  std::vector<bool> same;
  for (const auto states : threads) {
    same.push_back(states.front().states == states.size());
    for (const auto& state : states) {
      auto before = std::span{state.snapshot.bytes};
      for (const auto& range : state.snapshot.ranges) {
        same.back() = same.back() && piece->done &&
                      std::memcmp(piece->into.data(), before.data(), range.size) == 0;
        before = before.subspan(range.size);
        ++piece;
      }
      same.back() = same.back() && !state.snapshot.ranges.empty();
      codes.insert(codes.end(), state.codes.begin(), state.codes.end());
    }
  }
  make_unique(codes);
  codes_.recognise(codes);
  std::vector<ThreadStack> stacks;
  std::vector<States> others;
  const auto looked_at = [this](const KnownThread& state) {
    return std::ranges::all_of(
        state.codes, [this](base::RemoteAddress code) { return codes_.find(code) != nullptr; });
  };
  const auto is_named = [this](const PythonFrame& frame) {
    return codes_.names(frame.code, frame.code_serial) != nullptr;
  };
  for (std::size_t i = 0; i < threads.size(); ++i) {
    const auto& frames = threads[i].front().stack.frames;
    // The kept frames name their code objects by serial: one that was read again has another.
    const bool known =
        std::ranges::all_of(threads[i], looked_at) && std::ranges::all_of(frames, is_named);
    if (!same[i] || !known) {
      others.push_back(threads[i]);
    } else if (!frames.empty()) {
      stacks.push_back(threads[i].front().stack);
    }
  }
  threads = std::move(others);
  return stacks;
}

bool LiveStacks::read_thread(States states, std::vector<ThreadStack>& stacks) {
  if (states.empty()) {
    return true;
  }
  std::vector<RawStack> parts;
  bool settled = true;
  for (auto& state : states) {
    state.states = 0;
    switch (read_state(state, parts.emplace_back())) {
      case Outcome::kRead:
        break;
      case Outcome::kOuterRead:
        settled = false;
        break;
      case Outcome::kGone:
        return false;
      case Outcome::kChanged:
        ++losses_.changed;
        unread_.push_back(state.tid);
        return true;
      case Outcome::kUnreadable:
        ++losses_.unreadable;
        unread_.push_back(state.tid);
        return true;
    }
  }
  auto& first = states.front();
  first.stack = assembled(first.tid, joined(std::move(parts)), codes_);
  first.stack.settled = settled;
  first.states = settled ? states.size() : 0;
  if (!first.stack.frames.empty()) {
    stacks.push_back(first.stack);
  }
  return true;
}

LiveStacks::Outcome LiveStacks::read_state(KnownThread& state, RawStack& stack) {
  constexpr int kAttempts = 6;
  // Two valid walks share the outer frames; if the innermost frames change all the time, a walk is
  // valid with a probability of one in two or three.
  constexpr int kAttemptsForOuter = 40;
  bool sense = false;
  RawStack outer;
  std::optional<RawStack> before;
  for (int attempt = 0;
       attempt < kAttempts || (outer.frames.empty() && attempt < kAttemptsForOuter); ++attempt) {
    pages_.refresh(state.pages);
    if (!threads_.is_still(pages_, state)) {
      return Outcome::kGone;
    }
    auto now = walk_frames(pages_, layout_.stack, state.address, gaps_);
    if (gaps_ == Gaps::kCut) {
      cut_at_gap(now);
    }
    state.pages = pages_.used();
    if (before && now && same_calls(*before, *now)) {
      stack = std::move(*now);
      remember(state);
      return Outcome::kRead;
    }
    if (before && now) {
      if (auto same = outer_part(*before, *now); same.frames.size() >= outer.frames.size()) {
        outer = std::move(same);
      }
    }
    sense = sense || now;
    if (now) {
      before.reset();
      state.codes.clear();
      for (const auto& frame : now->frames) {
        state.codes.push_back(frame.code);
      }
      make_unique(state.codes);
      if (codes_.look_at(state.codes)) {
        before = std::move(now);
      }
    }
  }
  const bool known = std::ranges::all_of(
      outer.frames, [this](const RawFrame& frame) { return codes_.find(frame.code) != nullptr; });
  if (!outer.frames.empty() && known) {
    stack = std::move(outer);
    return Outcome::kOuterRead;
  }
  return sense ? Outcome::kChanged : Outcome::kUnreadable;
}

void LiveStacks::cut_at_gap(std::optional<RawStack>& stack) {
  if (!stack) {
    return;
  }
  const auto gap = std::ranges::find_if(stack->frames, [this](const RawFrame& frame) {
    return codes_.find(frame.code) == nullptr && !codes_.look_at(std::array{frame.code});
  });
  if (gap != stack->frames.end()) {
    stack->frames.erase(gap, stack->frames.end());
    stack->complete = false;
  }
  if (stack->frames.empty() && !stack->complete) {
    stack.reset();
  }
}

void LiveStacks::remember(KnownThread& state) {
  remembered_ -= state.snapshot.bytes.size();
  state.snapshot = pages_.snapshot();
  if (state.snapshot.bytes.size() > kMostRemembered - remembered_) {
    state.snapshot = {};
  }
  remembered_ += state.snapshot.bytes.size();
}

std::optional<CodeNames> LiveStacks::names(base::RemoteAddress code) {
  if (codes_.find(code) == nullptr && !codes_.look_at(std::array{code})) {
    return std::nullopt;
  }
  return codes_.find(code)->names;
}

std::optional<CodeNames> LiveStacks::names(const PythonFrame& frame) const {
  const auto* const names = codes_.names(frame.code, frame.code_serial);
  return names != nullptr ? std::optional{*names} : std::nullopt;
}

namespace {

// Whether a stack that cannot be read proves that the layout is wrong. For some instructions of a
// call, no layout leads to the stack (docs/cpython-notes.md, "Frames"), and a thread that is
// stopped or preempted there stays so. It is elsewhere if it is blocked in a system call, and it is
// at another instruction once it has run.
class Moments {
 public:
  Moments(const ProcessImage& image, base::Pid pid) : image_{image}, pid_{pid} {}

  // Whether one of TIDS, whose stacks have just been unreadable, has not been seen there before.
  [[nodiscard]] bool is_new(const std::vector<base::Tid>& tids) {
    const auto before = std::exchange(on_cpu_, {});
    bool waits = false;
    for (const auto tid : tids) {
      const auto call = image_.system_call(tid);
      waits = waits || (call && procfs::parse_system_call(*call));
      const auto usage = image_.changes() ? procfs::read_thread_usage(pid_, tid) : std::nullopt;
      on_cpu_ += usage ? usage->on_cpu : std::chrono::nanoseconds{};
    }
    return waits || on_cpu_ != before;
  }

 private:
  const ProcessImage& image_;
  base::Pid pid_;
  std::chrono::nanoseconds on_cpu_{};
};

// Whether no frame of any thread is valid although the threads are not always in the middle of a
// call.
bool contradict(LiveStacks& stacks, const ProcessImage& image, base::Pid pid) {
  // 3.12.1 that only makes calls is there for 1.2 % of its instructions.
  constexpr int kProof = 10;
  constexpr std::chrono::seconds kPatience{1};
  constexpr std::chrono::milliseconds kPause{1};
  const auto deadline = base::Deadline::after(kPatience);
  Moments moments{image, pid};
  for (int left = image.changes() ? kProof : 1; left > 0;) {
    if (!stacks.read().empty() || stacks.unread().empty() || stacks.losses().changed != 0) {
      return false;
    }
    if (moments.is_new(stacks.unread())) {
      --left;
    } else if (!image.changes() || deadline.expired()) {
      return false;
    } else {
      std::this_thread::sleep_for(kPause);
    }
  }
  return true;
}

}  // namespace

std::variant<std::unique_ptr<LiveStacks>, std::string> open_stacks(const Target& target,
                                                                   const ProcessImage& image) {
  const auto prepared = prepare_frame_reading(target, image);
  if (const auto* why = std::get_if<std::string>(&prepared)) {
    return *why;
  }
  const auto& [file, layout] = std::get<FrameReading>(prepared);
  constexpr auto kType = std::to_array<std::string_view>({"PyCode_Type"});
  const auto symbols = file.find_symbols(kType);
  if (symbols.empty()) {
    return std::string{"its interpreter does not export PyCode_Type"};
  }
  auto stacks = std::make_unique<LiveStacks>(image.memory(), image.thread_numbers(), layout,
                                             target.addresses.runtime,
                                             target.bias.apply(symbols.begin()->second.address));
  if (!image.changes()) {
    stacks->set_unchanging();
  }
  if (contradict(*stacks, image, target.id.pid)) {
    return std::string{"its Python frames are not as this version's should be"};
  }
  stacks->forget_losses();
  return stacks;
}

}  // namespace pyinject::python
