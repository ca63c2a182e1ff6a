#include "inspect/python_side.hpp"

#include "pyinject/base/deadline.hpp"
#include "python/layout/frame_reading.hpp"
#include "python/objects/deadlocks.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

namespace pyinject::inspect {

namespace {

// Retries for a stack that does not settle.
constexpr int kAttemptsToSettle = 8;
constexpr std::chrono::milliseconds kPatienceForUnsettled{100};  // for all threads of a process
constexpr std::chrono::milliseconds kPauseForUnreadable{1};
constexpr std::chrono::milliseconds kPatienceForLocals{1000};
constexpr std::chrono::milliseconds kPatienceForLocalsOfStopped{50};

}  // namespace

bool runs(Activity activity) {
  return activity == Activity::kOnProcessor || activity == Activity::kRunnable ||
         activity == Activity::kRunningOrRunnable;
}

std::variant<std::unique_ptr<PythonSide>, std::string> PythonSide::of(
    const python::Target& target, std::shared_ptr<const python::ProcessImage> image) {
  auto prepared = python::prepare_frame_reading(target, *image);
  if (auto* const why = std::get_if<std::string>(&prepared)) {
    return std::move(*why);
  }
  auto stacks = python::open_stacks(target, *image);
  if (auto* const why = std::get_if<std::string>(&stacks)) {
    return std::move(*why);
  }
  return std::make_unique<PythonSide>(
      std::move(image), std::get<std::unique_ptr<python::LiveStacks>>(std::move(stacks)),
      std::get<python::FrameReading>(prepared).layout, target);
}

PythonSide::PythonSide(std::shared_ptr<const python::ProcessImage> image,
                       std::unique_ptr<python::LiveStacks> stacks,
                       const python::RuntimeLayout& layout, const python::Target& target)
    : image_{std::move(image)},
      memory_{image_->memory()},
      layout_{layout},
      reader_{std::move(stacks)},
      gils_{*memory_, layout_, target.addresses.runtime, image_->thread_numbers()} {
  auto objects = python::ObjectReader::of(target, image_);
  if (auto* const found = std::get_if<python::ObjectReader>(&objects)) {
    objects_.emplace(std::move(*found));
  } else {
    no_objects_ = std::get<std::string>(std::move(objects));
  }
}

void PythonSide::read(std::span<const base::Tid> tids) {
  stacks_.clear();
  take(tids.empty() ? reader_->read() : reader_->read(tids));
  // One of some twenty reads of a thread that only calls functions does not settle.
  const auto deadline = base::Deadline::after(kPatienceForUnsettled);
  auto left = not_good();
  for (int i = 0; i < kAttemptsToSettle && !left.empty() && !deadline.expired(); ++i) {
    take(reader_->read(left));
    left = not_good();
  }
  // A thread that waits for a processor in the middle of a call has no stack before it goes on.
  const auto keep_unreadable = [&] {
    std::erase_if(left, [this](base::Tid tid) { return !stacks_[tid].unreadable; });
  };
  for (keep_unreadable(); !left.empty() && !deadline.expired(); keep_unreadable()) {
    std::this_thread::sleep_for(kPauseForUnreadable);
    for (const auto tid : left) {
      stacks_.erase(tid);  // it may have exited
    }
    take(reader_->read(left));
    left = not_good();
  }
  gils_.update();
}

bool PythonSide::read_stopped() {
  stacks_.clear();
  raw_stacks_.clear();
  take(reader_->read());
  gils_.update();
  return not_good().empty();
}

// The names are those of the latest read.
void PythonSide::take(const std::vector<python::ThreadStack>& stacks) {
  for (const auto& read : stacks) {
    Stack stack{.frames = {}, .settled = read.settled, .complete = read.complete};
    for (const auto& frame : read.frames) {
      auto names = reader_->names(frame).value_or(python::CodeNames{.qualname = "?", .file = "?"});
      stack.frames.push_back({.function = std::move(names.qualname),
                              .file = std::move(names.file),
                              .line = frame.line,
                              .outermost = frame.outermost});
    }
    stacks_.insert_or_assign(read.tid, std::move(stack));
    raw_stacks_.insert_or_assign(read.tid, read);
  }
  for (const auto tid : reader_->unread()) {
    auto& stack = stacks_[tid];
    stack.unreadable = stack.frames.empty();
  }
}

std::vector<base::Tid> PythonSide::not_good() const {
  std::vector<base::Tid> tids;
  for (const auto& [tid, stack] : stacks_) {
    if (!stack.good()) {
      tids.push_back(tid);
    }
  }
  return tids;
}

void PythonSide::add_frames(ThreadSnapshot& thread) const {
  const auto found = stacks_.find(thread.tid);
  if (found == stacks_.end()) {
    return;
  }
  thread.frames = found->second.frames;
  thread.settled = found->second.settled;
  thread.complete = found->second.complete;
  thread.unreadable = found->second.unreadable;
}

void PythonSide::add_gil(ThreadSnapshot& thread, std::optional<std::uint64_t> futex) const {
  thread.gil = sample::Gil::kUnknown;
  thread.gil_holder.reset();
  thread.interpreters.clear();
  for (const auto& one : gils_.of(thread.tid)) {
    thread.python = true;
    thread.python_id = one.python_id;
    thread.interpreters.push_back(one.interpreter);
    const auto* const gil = gils_.find(one.gil);
    if (gil == nullptr) {
      continue;
    }
    if (gil->holder == thread.tid) {
      thread.gil = sample::Gil::kHeld;
      thread.gil_address = one.gil;
    } else if (futex && gil->contains_futex(*futex) && thread.gil != sample::Gil::kHeld) {
      thread.gil = sample::Gil::kWaitedFor;
      thread.gil_address = one.gil;
      thread.gil_holder = gil->holder;
    } else if (thread.gil == sample::Gil::kUnknown) {
      thread.gil = sample::Gil::kNone;
    }
  }
  std::ranges::sort(thread.interpreters);
  const auto end = std::unique(thread.interpreters.begin(), thread.interpreters.end());
  thread.interpreters.erase(end, thread.interpreters.end());
}

bool PythonSide::may_want_gil(base::Tid tid) const {
  bool wants = false;
  for (const auto& one : gils_.of(tid)) {
    const auto* const gil = gils_.find(one.gil);
    if (gil != nullptr && gil->holder == tid) {
      return false;
    }
    wants = wants || gil != nullptr;
  }
  return wants && gils_.thread_count() > 1;
}

// A sleeping thread holds a GIL only if it did so throughout its own reads.
void PythonSide::settle_gil(std::map<base::Tid, ThreadSnapshot>& threads) const {
  for (auto& [tid, thread] : threads) {
    if (runs(thread.activity)) {
      add_gil(thread, std::nullopt);
      continue;
    }
    for (const auto& one : gils_.of(tid)) {
      const auto* const gil = gils_.find(one.gil);
      const auto holder = gil != nullptr ? gil->holder : std::nullopt;
      if (thread.gil == sample::Gil::kHeld && thread.gil_address == one.gil && holder != tid) {
        thread.gil = sample::Gil::kNone;
      } else if (thread.gil == sample::Gil::kWaitedFor && thread.gil_address == one.gil) {
        thread.gil_holder = holder != tid ? holder : std::nullopt;
      }
    }
  }
}

void PythonSide::read_objects(const std::function<bool(base::Tid)>& steady) {
  read_objects(steady, kPatienceForLocals);
}

void PythonSide::read_objects(const std::function<bool(base::Tid)>& steady,
                              std::chrono::nanoseconds patience_for_locals) {
  if (!objects_) {
    return;
  }
  if (wants_locals_) {  // first: of threads that run, they are soon others
    read_locals(patience_for_locals);
  }
  names_ = objects_->thread_names();
  std::vector<python::ThreadStack> stacks;
  for (const auto& [tid, stack] : raw_stacks_) {
    if (steady(tid)) {
      stacks.push_back(stack);
    }
  }
  waits_ = objects_->waits(stacks);
  std::erase_if(waits_, [](const auto& wait) { return !wait.certain; });
  // Threads in a deadlock wait for the same objects in a second read, too.
  if (!python::find_deadlocks(waits_).empty()) {
    const auto again = objects_->waits(stacks);
    std::erase_if(waits_, [&again](const auto& wait) {
      return std::ranges::find(again, wait) == again.end();
    });
  }
  tasks_ = objects_->tasks();
}

void PythonSide::read_greenlets() {
  if (objects_) {
    greenlets_ = objects_->greenlets();
  }
}

void PythonSide::read_locals(std::chrono::nanoseconds patience) {
  locals_.clear();
  objects_->want_locals(base::Deadline::after(patience));
  for (const auto& [tid, stack] : raw_stacks_) {
    locals_.emplace(tid, objects_->locals(stack));
  }
}

void PythonSide::read_objects_stopped() {
  if (objects_) {
    objects_->set_steady(true);
    read_objects([](base::Tid) { return true; },
                 image_->changes() ? kPatienceForLocalsOfStopped : python::kPatienceForUnchanged);
    read_greenlets();
    objects_->set_steady(false);
  }
}

void PythonSide::add_objects(ProcessSnapshot& process) {
  std::map<base::Tid, ThreadSnapshot*> threads;
  for (auto& thread : process.threads) {
    threads.emplace(thread.tid, &thread);
  }
  for (auto& named : names_) {
    if (const auto found = threads.find(named.tid); found != threads.end() && named.certain) {
      found->second->python_name = std::move(named.name);
    }
  }
  process.has_locals = wants_locals_;
  process.no_locals = wants_locals_ ? no_objects_ : "";
  for (auto& [tid, locals] : locals_) {
    const auto found = threads.find(tid);
    if (found != threads.end() && found->second->frames.size() == locals.size()) {
      for (std::size_t i = 0; i < locals.size(); ++i) {
        found->second->frames[i].locals = std::move(locals[i]);
      }
    }
  }
  for (const auto& cycle : python::find_deadlocks(waits_)) {
    std::vector<base::Tid> members;
    std::ranges::transform(cycle, std::back_inserter(members),
                           [this](std::size_t index) { return waits_[index].waiter; });
    process.deadlocks.push_back(std::move(members));
  }
  for (auto& wait : waits_) {
    if (const auto found = threads.find(wait.waiter); found != threads.end()) {
      found->second->wait = std::move(wait);
    }
  }
  process.tasks = std::move(tasks_.tasks);
  process.all_tasks = tasks_.complete;
  process.greenlets = std::move(greenlets_.greenlets);
  process.all_greenlets = greenlets_.complete;
}

std::unique_ptr<PythonSide> python_side_of(const python::Target* target,
                                           std::shared_ptr<const python::ProcessImage> image,
                                           ProcessSnapshot& process) {
  if (target == nullptr) {
    return nullptr;
  }
  process.version = target->version;
  process.version_text = python::version_text(*target);
  process.interpreter = target->interpreter;
  auto made = PythonSide::of(*target, std::move(image));
  if (auto* const why = std::get_if<std::string>(&made)) {
    process.no_stacks = std::move(*why);
    return nullptr;
  }
  return std::get<std::unique_ptr<PythonSide>>(std::move(made));
}

}  // namespace pyinject::inspect
