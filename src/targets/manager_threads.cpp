// Activations by several threads: of many processes at the start, and of those that appear later.
#include "targets/process_manager.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <system_error>
#include <thread>
#include <variant>

namespace pyinject::targets {

namespace {

using python::Reason;

constexpr std::chrono::milliseconds kInterruptionNoticed{20};
// An activation that takes longer is only waiting for its target.
constexpr std::chrono::milliseconds kOnlyWaits{10};
constexpr std::size_t kMostWaiting = 256;
// For all initial targets together, if they are tried again later.
constexpr std::chrono::seconds kPatienceAtStart{1};
// Limit for examining one late arrival.
constexpr std::chrono::seconds kLatePatience{2};

// Always joins its threads: a joinable thread at destruction would kill this tool while targets are
// on.
class Workers {
 public:
  explicit Workers(std::atomic<bool>& cancelled) : cancelled_{cancelled} {}
  ~Workers() {
    if (!threads_.empty()) {
      cancelled_ = true;
      join();
    }
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // False: no further thread is available. Throws if there is none at all.
  template <typename Work>
  bool begin(const Work& work) {
    try {
      threads_.emplace_back(work);
      return true;
    } catch (const std::system_error&) {
      if (threads_.empty()) {
        throw;
      }
      return false;
    }
  }
  void join() {
    for (auto& thread : threads_) {
      thread.join();
    }
    threads_.clear();
  }

 private:
  std::atomic<bool>& cancelled_;
  std::vector<std::thread> threads_;
};

// Whether it is on by SESSION, which has not touched it.
bool is_on_by(const std::optional<base::ProcessId>& session, const python::Detection& detection) {
  const auto* const target = std::get_if<python::Target>(&detection);
  return target != nullptr && target->state == python::TrampolineState::kOnByUs &&
         target->owner == session;
}

}  // namespace

// An activation mostly waits for its target, and some targets never reach a safe point. Waiting
// activations do not count against the limit, and all share one deadline. Targets still pending
// then are tried once more during the recording, if late arrivals are followed. False: interrupted.
bool ProcessManager::activate_side_by_side(std::vector<python::Target> targets) {
  struct Slot {
    base::Deadline::Clock::time_point since;
    bool busy = false;
  };
  std::mutex mutex;
  std::condition_variable ended;
  std::deque<Slot> slots;  // one per thread
  std::size_t next = 0;
  std::size_t working = 0;
  std::exception_ptr problem;
  const auto until =
      base::Deadline::after(options_.tried_again ? kPatienceAtStart : options_.activation_deadline);
  const auto work = [&](Slot& slot) {
    std::unique_lock lock{mutex};
    while (next < targets.size() && !cancelled_ && !problem && !until.expired()) {
      auto& target = targets[next++];
      slot = {.since = base::Deadline::Clock::now(), .busy = true};
      lock.unlock();
      std::exception_ptr thrown;
      try {
        const bool loud = is_of_user(target.id.pid);
        (void)activate_one(std::move(target),
                           {.deadline = until, .loud = loud, .again = options_.tried_again});
      } catch (...) {
        thrown = std::current_exception();
      }
      lock.lock();
      problem = problem ? problem : thrown;
    }
    slot.busy = false;
    --working;
    ended.notify_all();
  };
  Workers workers{cancelled_};
  bool given_up = false;
  {
    std::unique_lock lock{mutex};
    while (true) {
      const auto now = base::Deadline::Clock::now();
      auto quick = static_cast<std::size_t>(std::ranges::count_if(
          slots, [&](const Slot& slot) { return slot.busy && now - slot.since < kOnlyWaits; }));
      const auto most = std::min(targets.size(), kMostWaiting);
      while (next < targets.size() && quick < kMostAtATime && slots.size() < most &&
             !until.expired() && !cancelled_) {
        auto& slot = slots.emplace_back(Slot{.since = now, .busy = true});
        if (!workers.begin([&work, &slot] { work(slot); })) {
          slots.pop_back();
          break;
        }
        ++working;
        ++quick;
      }
      if (working == 0) {
        break;
      }
      ended.wait_for(lock, next < targets.size() ? kOnlyWaits : kInterruptionNoticed);
      lock.unlock();
      if (interrupted()) {
        given_up = true;
        cancelled_ = true;
      }
      lock.lock();
    }
  }
  workers.join();
  if (problem) {
    std::rethrow_exception(problem);
  }
  for (; next < targets.size() && !given_up && !options_.tried_again; ++next) {
    refuse(targets[next].id.pid,
           {.reason = Reason::kDeadline,
            .found = "not tried: too many other targets reached no safe point in time",
            .remedy = {}},
           true);
  }
  return !given_up;
}

python::Detection ProcessManager::detect_late(base::Pid pid) {
  const auto begin = base::Deadline::Clock::now();
  auto detection = detector_.detect(
      pid, base::Cancellation{examinations_, base::Deadline::after(kLatePatience)});
  if (options_.late_activations) {
    note_detection(pid, detection, base::Deadline::Clock::now() - begin);
  }
  return detection;
}

LateArrival ProcessManager::activate_late(base::Pid pid) {
  const auto image = image_of(pid);
  if (!image || cancelled_) {
    return {.late = cancelled_ ? Late::kRefused : Late::kGone};
  }
  if (const auto known = table_.begin(*image)) {
    return {.late = *known};
  }
  const auto done = [&](LateArrival arrival, const std::optional<ProcessImage>& settled) {
    table_.end(pid, settled);
    return arrival;
  };
  try {
    auto detection = detect_late(pid);
    const bool inherited = is_on_by(own_session(), detection);
    if (!options_.late_activations && !inherited) {
      return done({.late = Late::kRefused}, image);
    }
    if (const auto* refused = std::get_if<python::Refused>(&detection)) {
      if (refused->refusal.reason == Reason::kNotInitialized ||
          (refused->refusal.reason == Reason::kExited && lives(image->id))) {
        return done({.late = Late::kNotYet, .initialized = refused->initialized}, {});
      }
      refuse(pid, refused->refusal, false);
      // It may still map its interpreter.
      const bool final = refused->refusal.reason != Reason::kNotPython;
      return done({.late = Late::kRefused}, final ? image : std::nullopt);
    }
    auto& target = std::get<python::Target>(detection);
    const ProcessImage looked_at{.id = target.id, .stack_begin = target.stack_begin};
    if (inherited) {
      return done({.late = Late::kInherited, .inherited = std::move(target)}, looked_at);
    }
    const auto late = activate_one(
        std::move(target), {.deadline = base::Deadline::after(options_.activation_deadline)});
    return done({.late = late}, late == Late::kNotYet ? std::nullopt : std::optional{looked_at});
  } catch (...) {
    (void)done({}, image);
    throw;
  }
}

}  // namespace pyinject::targets
