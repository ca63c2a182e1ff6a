// Where the Python frames of a recording come from. A recording calls these in the order in which
// they stand here; what one engine needs and another does not is behind this interface only.
#pragma once

#include "pyinject/base/cancellation.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/record/record_observer.hpp"
#include "pyinject/targets/manager.hpp"
#include "record/call_graph.hpp"
#include "record/perf_run.hpp"
#include "weave/weave.hpp"

#include <map>
#include <span>
#include <string>
#include <vector>

namespace pyinject::session {

class Engine {
 public:
  virtual ~Engine() = default;
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Which processes can be recorded by it, and what the manager does to each. They live as long as
  // the engine.
  [[nodiscard]] virtual python::Detector& detector() = 0;
  [[nodiscard]] virtual TargetHandler& target_handler() = 0;
  // Hears of everything that happens to targets.
  [[nodiscard]] virtual RecordObserver& observer() = 0;

  // Before any process is looked at.
  virtual void begin() {}

  // A command that is launched to be recorded: what its environment gets, and then, while it is
  // held back, what is done about it.
  [[nodiscard]] virtual std::map<std::string, std::string> environment_of_command() { return {}; }
  virtual void command_held(base::Pid /*command*/) {}
  // Whether the Pythons that a launched command becomes or starts are taken as late arrivals.
  [[nodiscard]] virtual bool takes_launched_late() const { return false; }

  // perf's options for stacks. Ends early, with any answer, when INTERRUPTED is stopped.
  [[nodiscard]] virtual CallGraphChoice choose_call_graph(
      const std::vector<python::Target>& targets, const CallGraphWishes& wishes,
      const base::Cancellation& interrupted) = 0;

  // Whether the manager activates the targets before perf opens its events, or once its side-band
  // events are enabled.
  [[nodiscard]] virtual bool takes_targets_before_perf() const = 0;

  // Called by the manager: TARGET is about to be touched; it is active. False: that is no news.
  virtual void before_activation(const python::Target& /*target*/) {}
  [[nodiscard]] virtual bool activated(const ActiveTarget& active) = 0;

  // Whether threads that start while perf opens its events would lack Python functions, so that
  // perf is to be started again.
  [[nodiscard]] virtual bool misses_newborn_threads() const { return false; }
  // Whether perf may record the whole system, of which this engine then drops all but PIDS and what
  // they fork; narrow_to() before each start of such a perf.
  [[nodiscard]] virtual bool can_narrow() const { return false; }
  virtual void narrow_to(std::span<const base::Pid> /*pids*/) {}

  enum class Attached {
    kYes,
    kFailed,     // which the caller of the recording reports
    kPerfEnded,  // meanwhile
  };
  // To perf's events, which are open and disabled. MANAGER has the targets that were taken before.
  [[nodiscard]] virtual Attached attach(PerfRun& /*perf*/, const Manager& /*manager*/) {
    return Attached::kYes;
  }

  // Why attach() failed, if another engine may take this one's place then; else empty.
  [[nodiscard]] virtual std::string why_replaceable() const { return {}; }
  // No other takes its place: observer() passes on what it held back.
  virtual void release_events() {}

  // Twice a second while the events are enabled.
  virtual void on_tick(Manager& /*manager*/) {}
  // A target has ended, or runs another program, and its map has been copied.
  virtual void forget(const ActiveTarget& /*active*/) {}
  virtual void events_disabled() = 0;

  // MANAGER has switched its targets off: the rest of what is on. Can be called again. False:
  // something may still be on, which was logged.
  [[nodiscard]] virtual bool switch_off(Manager& /*manager*/) { return true; }
  // Nothing is on any more.
  virtual void dismiss() {}

  // What it knows of the stacks, for weave: `stacks`, `interpreters`, `dropped`. After
  // events_disabled().
  virtual void add_to(weave::RecordingContext& context) = 0;
  // What is lost for good when perf's file cannot be completed, since no file has it and `weave`
  // cannot bring it later; empty: nothing.
  [[nodiscard]] virtual std::string lost_if_incomplete() const { return {}; }
  // Its part of SUMMARY, which has the completed files.
  virtual void summarize(RecordSummary& summary) = 0;
};

}  // namespace pyinject::session
