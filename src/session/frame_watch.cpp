#include "session/frame_watch.hpp"

#include "base/format.hpp"
#include "pyinject/python/evaluator.hpp"
#include "session/recording_clock.hpp"

#include <algorithm>
#include <exception>
#include <set>
#include <utility>
#include <variant>

namespace pyinject::session {

namespace {

using std::chrono::nanoseconds;

constexpr std::chrono::milliseconds kPeriod{50};
constexpr std::chrono::milliseconds kFirstPause{1};
// Of processor time, that the share does not count: the first looks follow close on one another.
constexpr std::chrono::milliseconds kBurst{5};
constexpr int kShare = 200;  // one part in so many of a processor's time, at most

std::vector<weave::PythonFrame> frames_of(const python::ThreadStack& stack) {
  std::vector<weave::PythonFrame> frames;
  std::ranges::transform(stack.frames, std::back_inserter(frames), [](const auto& frame) {
    return weave::PythonFrame{.activation = frame.address.value(),
                              .code = frame.code_serial,
                              .line = frame.line,
                              .outermost = frame.outermost};
  });
  return frames;
}

}  // namespace

void FrameWatch::add(const ActiveTarget& active) {
  const auto& target = active.target;
  const bool first = active.activation.mechanism != python::Mechanism::kStore &&
                     active.activation.mechanism != python::Mechanism::kNone;
  const std::lock_guard lock{mutex_};
  const auto pid = static_cast<std::uint32_t>(target.id.pid.value());
  auto opened = python::StackReader::of(target);
  if (const auto* const why = std::get_if<std::string>(&opened)) {
    logger_.warning("pid {}: functions that were entered before cannot be named: {}", pid, *why);
    return;
  }
  auto& ranges = evaluators_[pid];
  for (const auto& range : python::evaluator_ranges(target)) {
    ranges.push_back({.begin = range.begin.value(), .end = range.end.value()});
  }
  if (ranges.empty()) {
    logger_.warning(
        "pid {}: functions that were entered before cannot be named: the evaluator was not found",
        pid);
    evaluators_.erase(pid);
    return;
  }
  auto& reader = std::get<python::StackReader>(opened);
  for (const auto& stack : reader.read()) {
    if (!stack.complete) {
      continue;
    }
    for (const auto& frame : stack.frames) {
      if (history_.name(pid, frame.code_serial) == nullptr) {
        if (auto names = reader.names(frame)) {
          history_.name(pid, frame.code_serial,
                        {.qualname = std::move(names->qualname),
                         .file = std::move(names->file),
                         .first_line = names->first_line});
        }
      }
    }
    history_.begin(pid, static_cast<std::uint32_t>(stack.tid.value()), frames_of(stack), first);
  }
  readers_.erase(pid);
  readers_.emplace(pid, std::move(reader));
  pause_ = kFirstPause;
  if (!clock_) {
    return;
  }
  if (thread_.joinable()) {
    wake_.notify_all();
  } else {
    began_ = std::chrono::steady_clock::now();
    thread_ = std::thread{[this] { run(); }};
  }
}

void FrameWatch::forget(base::Pid pid) {
  const std::scoped_lock lock{mutex_};
  readers_.erase(static_cast<std::uint32_t>(pid.value()));
}

void FrameWatch::stop() {
  {
    const std::lock_guard lock{mutex_};
    ending_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void FrameWatch::run() {
  std::unique_lock lock{mutex_};
  while (!ending_) {
    const auto before = now_by(CLOCK_THREAD_CPUTIME_ID);
    try {
      look();
    } catch (const std::exception& error) {
      // Out of a thread it would end this tool while targets are on. What was learned stays.
      logger_.warning("frames of before the attach are no longer looked at: {}", error.what());
      return;
    }
    ++effort_.rounds;
    effort_.processor_time += nanoseconds{now_by(CLOCK_THREAD_CPUTIME_ID) - before};
    wake_.wait_for(lock, next_pause(), [this] { return ending_ || pause_ == kFirstPause; });
  }
}

nanoseconds FrameWatch::next_pause() {
  pause_ = std::min<nanoseconds>(pause_ * 5 / 4, kPeriod);
  const nanoseconds allowed_since = (effort_.processor_time - kBurst) * kShare;
  return std::max<nanoseconds>(pause_, began_ + allowed_since - std::chrono::steady_clock::now());
}

void FrameWatch::look() {
  for (auto& [pid, reader] : readers_) {
    std::vector<base::Tid> tids;
    for (const auto tid : history_.threads(pid)) {
      tids.emplace_back(static_cast<pid_t>(tid));
    }
    if (tids.empty()) {
      continue;
    }
    for (const auto& stack : reader.read(tids)) {
      if (stack.complete) {
        history_.observe(pid, static_cast<std::uint32_t>(stack.tid.value()), now_by(*clock_),
                         frames_of(stack));
      }
    }
  }
}

}  // namespace pyinject::session
