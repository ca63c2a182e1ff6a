// Activates a set of processes and switches off what it has activated.
#pragma once

#include "pyinject/base/cancellation.hpp"
#include "pyinject/base/log.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/remote_address.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/python/injector.hpp"
#include "pyinject/targets/stats.hpp"
#include "pyinject/targets/target_handler.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace pyinject::session {

// What was done with one process, or found out about it.
enum class EventKind {
  kDetected,     // it can be activated, or is on already
  kSkipped,      // it cannot: REASON
  kActivated,    // it is on
  kDeactivated,  // it is off again, or has gone
  kFailed,       // it could not be switched on, or off: REASON
};
struct Event {
  EventKind kind{};
  base::Pid pid;
  std::optional<python::Reason> reason = {};
  std::chrono::nanoseconds duration{};  // of that step
};

struct ManagerOptions {
  // Strict: one failure makes activate_all() undo what it did. Lenient: failures are logged and
  // counted, a process that is no Python not even logged.
  bool strict = true;
  python::Owner owner = {};  // {0, 0}: what is activated stays on when the manager goes
  // False: activate_late() only finds out what inherited the trampoline.
  bool late_activations = true;
  // The caller calls activate_late() for all that activate_all() was given. A lenient
  // activate_all() then takes 1 s at most, and what comes to no safe point in that time is left for
  // later.
  bool tried_again = false;
  // Named processes stand for all their descendants. One of them that is no Python is no failure,
  // and `strict` applies to them only: a descendant that exits or fails ends nothing.
  bool families = false;
  std::chrono::nanoseconds activation_deadline = std::chrono::seconds{5};    // of one target
  std::chrono::nanoseconds deactivation_deadline = std::chrono::seconds{5};  // of all together
  // Asked again and again by activate_all() and deactivate_all(), in the thread that called them.
  // True: activate_all() gives up as after a failure, deactivate_all() makes the rest as short as
  // possible.
  std::function<bool()> interrupted = {};
  // Stopped: examinations end at once, with Reason::kNotExamined. Null: they have their own limits
  // only.
  const base::Cancellation* cancellation = nullptr;
  // Called with each target that is about to be touched. This and the next are called by any thread
  // that is inside a function of the manager, by one at a time, and may call active() and stats().
  std::function<void(const python::Target&)> before_activation = {};
  std::function<void(const Event&)> on_event = {};
};

struct ActiveTarget {
  python::Target target;
  python::Activation activation;
};
using ActiveTargets = std::vector<std::shared_ptr<const ActiveTarget>>;

// Those of a list of processes that can be activated or are on already. COMPLETE: none was
// refused, but for those that `families` accepts; every refusal was counted and, when the user has
// named the pids, logged.
struct Selection {
  std::vector<python::Target> targets;
  bool complete = true;
  std::set<base::Pid> no_pythons = {};
};

// What became of a process that appeared later.
enum class Late {
  kActive,            // it is on now
  kInherited,         // it was forked by a target and is on since its birth
  kNotYet,            // its interpreter is being started: to be asked again
  kRefused,           // it was counted, and logged if it is a Python at all
  kKnown,             // tracked, or pending in another thread, or refused before
  kGone,              // there is no such process any more; not counted
  kDifferentProgram,  // the pid now runs a different program (its exec record was lost)
};
struct LateArrival {
  Late late{};
  // kNotYet: the int that is written when the interpreter is ready, where that is known.
  std::optional<base::RemoteAddress> initialized = {};
  std::optional<python::Target> inherited = {};  // kInherited
};

// Not thread-safe unless noted. Its destructor is the safety net: with an owner it is
// deactivate_all().
class Manager {
 public:
  virtual ~Manager() = default;
  Manager() = default;
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  // Several are examined at a time.
  [[nodiscard]] virtual Selection select(const std::vector<base::Pid>& pids, bool named) = 0;
  [[nodiscard]] Selection select(const std::vector<base::Pid>& pids) { return select(pids, true); }

  // Called for every target as soon as it is active, as ManagerOptions::on_event is.
  using Listener = std::function<void(const ActiveTarget&)>;
  virtual void on_activation(Listener listener) = 0;

  // Strict: one after the other; lenient: all at a time, with one deadline. False: one failed that
  // `strict` applies to, or interrupted; what had been activated is off again. A target that was on
  // before counts as active and is left on at the end.
  [[nodiscard]] virtual bool activate_all(std::vector<python::Target> targets) = 0;

  // A process that appeared later: always lenient, tried once unless its interpreter was not ready
  // yet or activate_all() has left it for later. Of any thread, several at a time.
  virtual LateArrival activate_late(base::Pid pid) = 0;
  // Late activations that are under way end soon, and no more are begun. Of any thread.
  virtual void end_late_activations() = 0;

  // PID was a Python, and has ended before it was tried or ready: counted.
  virtual void missed(base::Pid pid) = 0;

  // PID has ended or runs another program. What it was is handed over, null if it was not active; a
  // later process of the same number is a new one. Of any thread, but not from a listener: what is
  // handed over has been announced before.
  virtual std::shared_ptr<const ActiveTarget> forget(base::Pid pid) = 0;

  // Switches off what this manager has switched on and whatever else is on by us among OTHERS
  // (children that inherited it). Bounded over all, but each is given 100 ms at least; a process
  // that has gone is no failure. False: one of this call or an earlier one may still be on; it was
  // logged. Not while activate_late() is under way.
  virtual bool deactivate_all(const std::vector<python::Target>& others) = 0;
  bool deactivate_all() { return deactivate_all({}); }

  // Has the trampolines kept that active targets have made meanwhile (Injector::keep_trampolines).
  // Of the thread that calls deactivate_all().
  virtual void keep_trampolines() {}

  // Those that are active now. Of any thread.
  [[nodiscard]] virtual ActiveTargets active() const = 0;
  [[nodiscard]] virtual const Stats& stats() const = 0;  // of any thread
};

// The arguments have to outlive the manager, and are used by several threads at a time.
[[nodiscard]] std::unique_ptr<Manager> make_manager(python::Detector& detector,
                                                    TargetHandler& handler, base::Logger& logger,
                                                    ManagerOptions options);
// With a TrampolineHandler of INJECTOR.
[[nodiscard]] std::unique_ptr<Manager> make_manager(python::Detector& detector,
                                                    python::Injector& injector,
                                                    base::Logger& logger, ManagerOptions options);

}  // namespace pyinject::session
