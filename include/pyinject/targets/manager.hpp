// Activates a set of processes, and switches off what it activated.
//
// For example:
//   targets::ManagerOptions options{.strict = false, .owner = targets::this_session()};
//   const auto processes = targets::make_manager(detector, injector, logger, options);
//   auto selection = processes->select({pid});
//   if (processes->activate_all(std::move(selection.targets))) {
//     ::sleep(10);  // perf records
//   }
//   (void)processes->deactivate_all();
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

namespace pyinject::targets {

// The outcome of one step for one process.
enum class EventKind {
  kDetected,     // it can be activated, or is already on
  kSkipped,      // it cannot be activated: REASON
  kActivated,    // it is on
  kDeactivated,  // it is off again, or has exited
  kFailed,       // it could not be switched on or off: REASON
};
struct Event {
  EventKind kind{};
  base::Pid pid;
  std::optional<python::Reason> reason = {};
  std::chrono::nanoseconds duration{};  // of that step
  // kDeactivated: the program had switched the trampoline off itself, after its activation.
  bool off_by_program = false;
};

struct ManagerOptions {
  // Strict: one failure makes activate_all() undo everything. Lenient: failures are logged and
  // counted; a process that is no Python is only counted.
  bool strict = true;
  python::Owner owner = {};  // {0, 0}: activated targets stay on when the manager is destroyed
  // False: activate_late() only finds processes that inherited the trampoline.
  bool late_activations = true;
  // The caller will call activate_late() for everything passed to activate_all(). A lenient
  // activate_all() then takes at most 1 s, and postpones targets that reach no safe point in that
  // time.
  bool tried_again = false;
  // Pids given by the user stand for all their descendants. Among these a process that is no Python
  // is no failure, and `strict` applies to the given pids only: a descendant that exits or fails
  // ends nothing.
  bool families = false;
  std::chrono::nanoseconds activation_deadline = std::chrono::seconds{5};    // of one target
  std::chrono::nanoseconds deactivation_deadline = std::chrono::seconds{5};  // of all together
  // Polled by activate_all() and deactivate_all() in the calling thread. True: activate_all() gives
  // up as after a failure, deactivate_all() finishes as fast as possible.
  std::function<bool()> interrupted = {};
  // If stopped, examinations end immediately with Reason::kNotExamined. Null: only their own limits
  // apply.
  const base::Cancellation* cancellation = nullptr;
  // Called before a target is touched. This and the next function are called from any thread inside
  // a function of the manager, one call at a time, and may call active(), stats() and forget().
  std::function<void(const python::Target&)> before_activation = {};
  std::function<void(const Event&)> on_event = {};
};

struct ActiveTarget {
  python::Target target;
  python::Activation activation;
};
using ActiveTargets = std::vector<std::shared_ptr<const ActiveTarget>>;

// Those of a list of processes that can be activated or are already on. COMPLETE: none was refused,
// except those that `families` accepts. Every refusal was counted and, if the user gave the pids,
// logged.
struct Selection {
  std::vector<python::Target> targets;
  bool complete = true;
  std::set<base::Pid> no_pythons = {};
  std::set<base::Pid> uninitialized = {};  // with a libpython that may be for their children only
};

// Result for a process that appeared later.
enum class Late {
  kActive,            // it is on now
  kInherited,         // a target forked it; it has been on since its start
  kNotYet,            // its interpreter is still starting: ask again
  kRefused,           // refused and counted; logged if it is a Python
  kKnown,             // tracked, pending in another thread, or refused before
  kGone,              // the process has exited; not counted
  kDifferentProgram,  // the pid now runs a different program (its exec record was lost)
};
struct LateArrival {
  Late late{};
  // kNotYet: address of the int that is written when the interpreter is ready, if known.
  std::optional<base::RemoteAddress> initialized = {};
  std::optional<python::Target> inherited = {};  // kInherited
};

// Not thread-safe unless noted. With an owner, the destructor calls deactivate_all() as a safety
// net.
class Manager {
 public:
  virtual ~Manager() = default;
  Manager() = default;
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  // Examines several processes concurrently.
  [[nodiscard]] virtual Selection select(const std::vector<base::Pid>& pids, bool named) = 0;
  [[nodiscard]] Selection select(const std::vector<base::Pid>& pids) { return select(pids, true); }

  // Called for every target as soon as it is active, under the rules of ManagerOptions::on_event,
  // but it must not forget the target that it is called for. While a call lasts, other calls wait;
  // active(), stats() and forget() of other targets do not. Set it before the first activation.
  using Listener = std::function<void(const ActiveTarget&)>;
  virtual void on_activation(Listener listener) = 0;

  // Strict: one after the other. Lenient: concurrently, with one deadline for all. False: a target
  // failed to which `strict` applies, or interrupted; everything activated is off again. A target
  // that was on before counts as active and is left on at the end.
  [[nodiscard]] virtual bool activate_all(std::vector<python::Target> targets) = 0;

  // Activates a process that appeared later: always lenient, tried once unless its interpreter was
  // not ready yet or activate_all() postponed it. Thread-safe; calls may run concurrently.
  virtual LateArrival activate_late(base::Pid pid) = 0;
  // Pending late activations end soon, and no new ones start. Thread-safe.
  virtual void end_late_activations() = 0;

  // PID was a Python and exited before it was tried or ready: counts it.
  virtual void missed(base::Pid pid) = 0;

  // PID has exited or exec'ed. Returns its entry, null if it was not active; a later process with
  // the same pid is a new one. Thread-safe. Waits until the listener returns if it is being called
  // for PID; afterwards it is not called for the returned target. A target that was forgotten
  // between its activation and its turn has not been announced at all.
  virtual std::shared_ptr<const ActiveTarget> forget(base::Pid pid) = 0;

  // Switches off what this manager switched on, and everything in OTHERS (children that inherited
  // the trampoline) that is on by us. The total time is bounded, but each target gets at least 100
  // ms; a process that has exited is no failure. False: a target of this call or an earlier one may
  // still be on; it was logged. Must not run concurrently with activate_late().
  virtual bool deactivate_all(const std::vector<python::Target>& others) = 0;
  bool deactivate_all() { return deactivate_all({}); }

  // Keeps the trampolines that active targets have made since (Injector::keep_trampolines). Call it
  // from the thread that calls deactivate_all().
  virtual void keep_trampolines() {}

  // The targets that are active now. Thread-safe.
  [[nodiscard]] virtual ActiveTargets active() const = 0;
  [[nodiscard]] virtual const Stats& stats() const = 0;  // thread-safe
};

// The arguments must outlive the manager; several threads use them concurrently.
[[nodiscard]] std::unique_ptr<Manager> make_manager(python::Detector& detector,
                                                    TargetHandler& handler, base::Logger& logger,
                                                    ManagerOptions options);
// The same with a TrampolineHandler for INJECTOR.
[[nodiscard]] std::unique_ptr<Manager> make_manager(python::Detector& detector,
                                                    python::Injector& injector,
                                                    base::Logger& logger, ManagerOptions options);

}  // namespace pyinject::targets
