#include "record/frame_watch.hpp"

#include "base/clock.hpp"
#include "base/format.hpp"
#include "elf/greenlet_functions.hpp"
#include "procfs/maps.hpp"
#include "procfs/stat.hpp"
#include "pyinject/python/evaluator.hpp"
#include "python/layout/layout_facts.hpp"
#include "python/objects/object_reader.hpp"
#include "record/recording_clock.hpp"

#include <algorithm>
#include <exception>
#include <iterator>
#include <map>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <variant>

namespace pyinject::record {

namespace {

using std::chrono::nanoseconds;

constexpr std::chrono::milliseconds kPeriod{50};
constexpr std::chrono::milliseconds kFirstPause{1};
constexpr std::chrono::milliseconds kPauseOfUnknown{2};  // while a thread's stack is unknown
// Processor time exempt from the share: the first reads follow each other closely.
constexpr std::chrono::milliseconds kBurst{5};
constexpr std::chrono::seconds kBetweenLooksForGreenlets{1};
constexpr std::chrono::milliseconds kPatienceForSuspended{200};
constexpr std::chrono::seconds kMostForSuspended{1};  // processor time, for all targets
constexpr int kShare = 200;                           // use at most 1/kShare of a processor

// FIRST_CODE: added to the numbers of code objects.
std::vector<sample::Frame> frames_of(const python::ThreadStack& stack, std::uint64_t first_code) {
  std::vector<sample::Frame> frames;
  std::ranges::transform(stack.frames, std::back_inserter(frames), [&](const auto& frame) {
    return sample::Frame{.activation = frame.address.value(),
                         .code = first_code + frame.code_serial,
                         .line = frame.line,
                         .outermost = frame.outermost};
  });
  return frames;
}

}  // namespace

std::vector<weave::EntryFrame> FrameWatch::entry_frames() {
  std::vector<weave::EntryFrame> frames;
  for (const auto& frame : python::entry_frames()) {
    frames.push_back(
        {.previous = frame.previous, .owner = frame.owner, .owner_value = frame.owner_value});
  }
  return frames;
}

void FrameWatch::know(const targets::ActiveTarget& active) {
  const std::lock_guard lock{mutex_};
  (void)know_interpreter(active.target);
}

const weave::Interpreter* FrameWatch::know_interpreter(const python::Target& target) {
  weave::Interpreter interpreter{
      .evaluator = {},
      .frame_pointers = target.frame_pointers,
      .seen = clock_ ? std::optional{base::now_by(*clock_)} : std::nullopt};
  // Otherwise that may be a time of the program that it has executed since.
  if (procfs::runs_another(target.id, target.stack_begin)) {
    return nullptr;
  }
  for (const auto& range : python::evaluator_ranges(target)) {
    interpreter.evaluator.push_back({.begin = range.begin.value(), .end = range.end.value()});
  }
  return &interpreters_[static_cast<std::uint32_t>(target.id.pid.value())].emplace_back(
      std::move(interpreter));
}

void FrameWatch::add(const targets::ActiveTarget& active) {
  const auto& target = active.target;
  const bool first = active.activation.mechanism != python::Mechanism::kStore &&
                     active.activation.mechanism != python::Mechanism::kNone;
  const std::lock_guard lock{mutex_};
  const auto pid = static_cast<std::uint32_t>(target.id.pid.value());
  const auto now = clock_ ? base::now_by(*clock_) : 0;
  auto opened = python::StackReader::of(target);
  const auto* const interpreter = know_interpreter(target);
  if (interpreter == nullptr) {
    return;
  }
  if (const auto* const why = std::get_if<std::string>(&opened);
      why != nullptr || interpreter->evaluator.empty()) {
    if (!procfs::ends_now(target.id)) {
      logger_.warning("pid {}: functions entered before the attach cannot be named: {}", pid,
                      why != nullptr ? *why : "the evaluator was not found");
    }
    return;
  }
  const auto since = static_cast<std::uint64_t>(active.activation.until_active.count());
  constexpr std::uint64_t kMostCodes = std::uint64_t{1} << 40U;
  Watched watched{.target = target,
                  .reader = std::get<python::StackReader>(std::move(opened)),
                  .first = first,
                  .begun = now > since ? now - since : 0,
                  .first_code = kMostCodes * targets_added_++};
  for (const auto& stack : watched.reader.read()) {
    begin(pid, watched, stack);
  }
  watched.unknown.insert(watched.reader.unread().begin(), watched.reader.unread().end());
  if (has_greenlets(pid, watched)) {
    look_at_suspended(pid, watched);
  }
  forget_watched(pid);
  watched_.emplace(pid, std::move(watched));
  pace_.pause = kFirstPause;
  if (!clock_) {
    return;
  }
  if (thread_.joinable()) {
    wake_.notify_all();
  } else {
    pace_.began = std::chrono::steady_clock::now();
    try {
      thread_ = std::thread{[this] { run(); }};
    } catch (const std::system_error& error) {
      logger_.warning(
          "functions entered before the attach are read only once: cannot start a thread: {}",
          error.what());
    }
  }
}

void FrameWatch::forget(base::Pid pid) {
  const std::scoped_lock lock{mutex_};
  forget_watched(static_cast<std::uint32_t>(pid.value()));
}

void FrameWatch::forget_watched(std::uint32_t pid) {
  if (const auto found = watched_.find(pid); found != watched_.end()) {
    unknown_threads_ += found->second.unknown.size();
    watched_.erase(found);
  }
}

std::size_t FrameWatch::unknown_threads() const {
  auto count = unknown_threads_;
  for (const auto& [pid, watched] : watched_) {
    count += watched.unknown.size();
  }
  return count;
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
    const auto before = base::now_by(CLOCK_THREAD_CPUTIME_ID);
    try {
      look();
    } catch (const std::exception& error) {
      // Leaving the thread, the exception would kill this tool while targets are on.
      logger_.warning("functions entered before the attach are no longer followed: {}",
                      error.what());
      return;
    }
    ++pace_.effort.rounds;
    pace_.effort.processor_time += nanoseconds{base::now_by(CLOCK_THREAD_CPUTIME_ID) - before};
    wake_.wait_for(lock, next_pause(), [this] { return ending_ || pace_.pause == kFirstPause; });
  }
}

nanoseconds FrameWatch::next_pause() {
  const bool unknown =
      std::ranges::any_of(watched_, [](const auto& each) { return !each.second.unknown.empty(); });
  pace_.pause = std::min<nanoseconds>(pace_.pause * 5 / 4, unknown ? kPauseOfUnknown : kPeriod);
  const nanoseconds allowed_since = (pace_.effort.processor_time - pace_.exempt - kBurst) * kShare;
  return std::max<nanoseconds>(pace_.pause,
                               pace_.began + allowed_since - std::chrono::steady_clock::now());
}

void FrameWatch::look() {
  for (auto& [pid, watched] : watched_) {
    look_at(pid, watched);
  }
}

void FrameWatch::look_at(std::uint32_t pid, Watched& watched) {
  std::vector<base::Tid> tids{watched.unknown.begin(), watched.unknown.end()};
  for (const auto tid : history_.threads(pid)) {
    tids.emplace_back(static_cast<pid_t>(tid));
  }
  if (tids.empty()) {
    return;
  }
  for (const auto& stack : watched.reader.read(tids)) {
    learn(pid, watched, stack);
  }
  // A thread with neither a stack nor an unreadable one has exited or left its functions.
  const auto& unread = watched.reader.unread();
  std::erase_if(watched.unknown,
                [&unread](base::Tid tid) { return std::ranges::count(unread, tid) == 0; });
}

void FrameWatch::begin(std::uint32_t pid, Watched& watched, const python::ThreadStack& stack) {
  watched.unknown.erase(stack.tid);
  if (!stack.complete) {
    return;
  }
  name(pid, watched, stack);
  history_.begin(pid, static_cast<std::uint32_t>(stack.tid.value()),
                 frames_of(stack, watched.first_code), watched.first, watched.begun);
  if (!stack.settled) {
    watched.partial.insert(stack.tid);
  }
}

void FrameWatch::learn(std::uint32_t pid, Watched& watched, const python::ThreadStack& stack) {
  if (watched.unknown.contains(stack.tid)) {
    begin(pid, watched, stack);
    return;
  }
  if (!stack.complete) {
    return;
  }
  const auto tid = static_cast<std::uint32_t>(stack.tid.value());
  if (history_.is_other(pid, tid, frames_of(stack, watched.first_code)) &&
      has_greenlets(pid, watched)) {
    name(pid, watched, stack);
    history_.expect_greenlets(pid);
    const auto before = pace_.for_suspended;
    look_at_suspended(pid, watched);
    pace_.exempt += pace_.for_suspended - before;
  }
  if (!watched.partial.contains(stack.tid)) {
    history_.observe(pid, tid, base::now_by(*clock_), frames_of(stack, watched.first_code),
                     !stack.settled);
    return;
  }
  name(pid, watched, stack);
  history_.extend(pid, tid, base::now_by(*clock_), frames_of(stack, watched.first_code),
                  !stack.settled);
  if (stack.settled) {
    watched.partial.erase(stack.tid);
  }
}

// The module may be imported at any time.
bool FrameWatch::has_greenlets(std::uint32_t pid, Watched& watched) {
  const auto now = std::chrono::steady_clock::now();
  if (watched.greenlets || now < watched.next_look_for_greenlets) {
    return watched.greenlets;
  }
  watched.next_look_for_greenlets = now + kBetweenLooksForGreenlets;
  const auto maps = procfs::read_maps(base::Pid{static_cast<pid_t>(pid)});
  watched.greenlets = maps && std::ranges::any_of(*maps, [](const procfs::Mapping& mapping) {
                        return mapping.executable && elf::is_greenlet_module(mapping.path);
                      });
  return watched.greenlets;
}

// Those that run only now and then might never run at the moment of a read. The one that runs
// during a look is not seen, so there are several looks.
void FrameWatch::look_at_suspended(std::uint32_t pid, Watched& watched) {
  constexpr std::uint64_t kLooks = 4;
  // Behind the numbers that READER gives, apart for each look.
  constexpr std::uint64_t kFirstCode = std::uint64_t{1} << 39U;
  constexpr std::uint64_t kCodesOfLook = std::uint64_t{1} << 32U;
  const auto look = watched.looks_at_suspended;
  if (look == kLooks || pace_.for_suspended >= kMostForSuspended) {
    return;
  }
  const auto began = base::now_by(CLOCK_THREAD_CPUTIME_ID);
  ++watched.looks_at_suspended;
  auto opened = python::ObjectReader::of(watched.target);
  auto* const objects = std::get_if<python::ObjectReader>(&opened);
  if (objects == nullptr) {
    return;
  }
  const auto first = watched.first_code + kFirstCode + look * kCodesOfLook;
  std::map<std::tuple<std::string, std::string, std::uint32_t>, std::uint64_t> codes;
  for (const auto& greenlet : objects->greenlets(kPatienceForSuspended).greenlets) {
    std::vector<sample::Frame> frames;
    for (auto i = greenlet.frames.size() - greenlet.outer_certain;
         greenlet.thread && i < greenlet.frames.size(); ++i) {
      const auto& names = greenlet.frames[i].names;
      const auto [code, fresh] =
          codes.try_emplace({names.qualname, names.file, names.first_line}, first + codes.size());
      if (fresh) {
        history_.name(pid, {.number = code->second,
                            .qualname = names.qualname,
                            .file = names.file,
                            .first_line = names.first_line});
      }
      frames.push_back({.activation = greenlet.activations[i],
                        .code = code->second,
                        .line = greenlet.frames[i].line});
    }
    const bool named = std::ranges::none_of(
        greenlet.frames, [](const auto& frame) { return frame.names.qualname.empty(); });
    if (greenlet.thread && named) {
      history_.keep_suspended(pid, static_cast<std::uint32_t>(greenlet.thread->value()), frames);
    }
  }
  pace_.for_suspended += nanoseconds{base::now_by(CLOCK_THREAD_CPUTIME_ID) - began};
}

void FrameWatch::name(std::uint32_t pid, const Watched& watched, const python::ThreadStack& stack) {
  for (const auto& frame : stack.frames) {
    const auto code = watched.first_code + frame.code_serial;
    if (history_.name(pid, code) != nullptr) {
      continue;
    }
    if (auto names = watched.reader.names(frame)) {
      history_.name(pid, {.number = code,
                          .qualname = std::move(names->qualname),
                          .file = std::move(names->file),
                          .first_line = names->first_line});
    }
  }
}

}  // namespace pyinject::record
