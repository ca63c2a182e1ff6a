// Activations by several threads: of many processes at the beginning, and of those that appear
// later.
#include "pyinject/procfs/stat.hpp"
#include "session/process_manager.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <system_error>
#include <thread>
#include <variant>

namespace pyinject::session {

namespace {

using python::Reason;

constexpr std::chrono::milliseconds kInterruptionNoticed{20};

// They are joined, whatever happens: a thread that is left would end this tool while targets are
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

  // False: there are some, and the system gives no more. Throws when it gives none.
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

}  // namespace

std::optional<ProcessImage> image_of(base::Pid pid) {
  const auto stat = procfs::read_stat(pid);
  if (!stat) {
    return std::nullopt;
  }
  return ProcessImage{.id = {.pid = pid, .start_time = stat->start_time},
                      .stack_begin = stat->stack_begin};
}

bool lives(base::ProcessId id) {
  const auto stat = procfs::read_stat(id.pid);
  return stat && stat->start_time == id.start_time && stat->state != 'Z' && stat->state != 'X';
}

// False: interrupted.
bool ProcessManager::activate_side_by_side(std::vector<python::Target> targets) {
  std::mutex mutex;
  std::condition_variable ended;
  std::size_t next = 0;
  std::size_t working = 0;
  std::exception_ptr problem;
  const auto work = [&] {
    std::unique_lock lock{mutex};
    while (next < targets.size() && !cancelled_ && !problem) {
      auto& target = targets[next++];
      lock.unlock();
      std::exception_ptr thrown;
      try {
        (void)activate_one(std::move(target), true);
      } catch (...) {
        thrown = std::current_exception();
      }
      lock.lock();
      problem = problem ? problem : thrown;
    }
    --working;
    ended.notify_all();
  };
  Workers workers{cancelled_};
  bool given_up = false;
  {
    std::unique_lock lock{mutex};
    while (working < std::min(kMostAtATime, targets.size()) && workers.begin(work)) {
      ++working;
    }
    while (working != 0) {
      ended.wait_for(lock, kInterruptionNoticed);
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
  return !given_up;
}

LateArrival ProcessManager::activate_late(base::Pid pid) {
  const auto image = image_of(pid);
  if (!image || cancelled_) {
    return {.late = cancelled_ ? Late::kRefused : Late::kGone};
  }
  {
    const std::scoped_lock lock{mutex_};
    if (pending_.contains(pid)) {
      return {.late = Late::kKnown};
    }
    if (const auto settled = settled_.find(pid); settled != settled_.end()) {
      return {.late = settled->second.same_as(*image) ? Late::kKnown : Late::kOther};
    }
    pending_.insert(pid);
  }
  const auto done = [&](LateArrival arrival, const std::optional<ProcessImage>& settled) {
    const std::scoped_lock lock{mutex_};
    pending_.erase(pid);
    if (settled) {
      settled_.insert_or_assign(pid, *settled);
    } else {
      settled_.erase(pid);
    }
    return arrival;
  };
  try {
    auto detection = options_.late_activations ? detect(pid) : detector_.detect(pid);
    if (!options_.late_activations && !inherits(detection)) {
      return done({.late = Late::kRefused}, image);
    }
    if (const auto* refused = std::get_if<python::Refused>(&detection)) {
      if (refused->refusal.reason == Reason::kNotInitialized ||
          (refused->refusal.reason == Reason::kExited && lives(image->id))) {
        return done({.late = Late::kNotYet, .initialized = refused->initialized}, {});
      }
      refuse(pid, refused->refusal, false);
      // One that has not mapped its interpreter yet may do so.
      const bool final = refused->refusal.reason != Reason::kNotPython;
      return done({.late = Late::kRefused}, final ? image : std::nullopt);
    }
    auto& target = std::get<python::Target>(detection);
    const ProcessImage looked_at{.id = target.id, .stack_begin = target.stack_begin};
    if (inherits(detection)) {
      return done({.late = Late::kInherited, .inherited = std::move(target)}, looked_at);
    }
    const auto late = activate_one(std::move(target), false);
    return done({.late = late}, late == Late::kNotYet ? std::nullopt : std::optional{looked_at});
  } catch (...) {
    (void)done({}, image);
    throw;
  }
}

// It is on by this session, which has not touched it.
bool ProcessManager::inherits(const python::Detection& detection) const {
  const auto* const target = std::get_if<python::Target>(&detection);
  return target != nullptr && target->state == python::TrampolineState::kOnByUs &&
         target->owner == own_session();
}

}  // namespace pyinject::session
