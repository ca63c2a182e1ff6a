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

// A process that changes to another program, or whose program is being mapped, can look for a
// moment as if it had ended.
bool lives(base::ProcessId id) {
  const auto stat = procfs::read_stat(id.pid);
  return stat && procfs::read_process_id(id.pid) == id && stat->state != 'Z' && stat->state != 'X';
}

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
        activate_one(std::move(target), true);
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
  const auto id = procfs::read_process_id(pid);
  if (!id || cancelled_) {
    return {.late = Late::kRefused};
  }
  {
    const std::scoped_lock lock{mutex_};
    const auto settled = settled_.find(pid);
    if ((settled != settled_.end() && settled->second == *id) || !pending_.insert(pid).second) {
      return {.late = Late::kKnown};
    }
  }
  const auto done = [&](LateArrival arrival, bool settle) {
    const std::scoped_lock lock{mutex_};
    pending_.erase(pid);
    if (settle) {
      settled_.insert_or_assign(pid, *id);
    }
    return arrival;
  };
  try {
    auto detection = options_.late_activations ? detect(pid) : detector_.detect(pid);
    if (!options_.late_activations && !inherits(detection)) {
      return done({.late = Late::kRefused}, true);
    }
    if (const auto* refused = std::get_if<python::Refused>(&detection)) {
      if (refused->refusal.reason == Reason::kNotInitialized ||
          (refused->refusal.reason == Reason::kExited && lives(*id))) {
        return done({.late = Late::kNotYet, .initialized = refused->initialized}, false);
      }
      refuse(pid, refused->refusal, false);
      // One that has not mapped its interpreter yet may do so.
      return done({.late = Late::kRefused}, refused->refusal.reason != Reason::kNotPython);
    }
    auto& target = std::get<python::Target>(detection);
    if (inherits(detection)) {
      return done({.late = Late::kInherited, .inherited = std::move(target)}, true);
    }
    const bool on = activate_one(std::move(target), false);
    return done({.late = on ? Late::kActive : Late::kRefused}, true);
  } catch (...) {
    (void)done({}, true);
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
