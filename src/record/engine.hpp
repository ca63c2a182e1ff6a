// The source of the Python frames of a recording. A recording calls these functions in the order of
// their declaration. Everything specific to one engine is behind this interface.
#pragma once

#include "pyinject/base/cancellation.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/record/record_observer.hpp"
#include "pyinject/targets/manager.hpp"
#include "record/call_graph.hpp"
#include "record/event_program.hpp"
#include "record/perf_run.hpp"
#include "weave/weave.hpp"

#include <map>
#include <string>
#include <vector>

namespace pyinject::record {

class Engine {
 public:
  virtual ~Engine() = default;
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Which processes the engine can record, and what the manager does to each. Both live as long as
  // the engine.
  [[nodiscard]] virtual python::Detector& detector() = 0;
  [[nodiscard]] virtual targets::TargetHandler& target_handler() = 0;
  // Gets all events about targets.
  [[nodiscard]] virtual RecordObserver& observer() = 0;

  // Called before any process is examined.
  virtual void begin() {}

  // For a command that is launched to be recorded: additions to its environment; then a call while
  // the command is held.
  [[nodiscard]] virtual std::map<std::string, std::string> environment_of_command() { return {}; }
  virtual void command_held(base::Pid /*command*/) {}
  // Whether Pythons that a launched command becomes or starts are handled as late arrivals.
  [[nodiscard]] virtual bool takes_launched_late() const { return false; }

  // perf's options for stacks. If INTERRUPTED is stopped, returns early with an arbitrary choice.
  [[nodiscard]] virtual CallGraphChoice choose_call_graph(
      const std::vector<python::Target>& targets, const CallGraphWishes& wishes,
      const base::Cancellation& interrupted) = 0;

  // True: the manager activates the targets before perf opens its events. False: once perf's
  // side-band events are enabled.
  [[nodiscard]] virtual bool takes_targets_before_perf() const = 0;

  // Called by the manager: first before TARGET is touched, then when it is active. False: already
  // known.
  virtual void before_activation(const python::Target& /*target*/) {}
  [[nodiscard]] virtual bool activated(const targets::ActiveTarget& active) = 0;

  // What attach() adds to perf's events; nullptr: nothing. Known once the call graph is chosen.
  [[nodiscard]] virtual EventProgram* program() { return nullptr; }

  enum class Attached {
    kYes,
    kFailed,     // the caller of the recording reports it
    kPerfEnded,  // perf exited in the meantime
  };
  // Attaches to perf's events, which are open and disabled. MANAGER has the targets that were taken
  // before.
  [[nodiscard]] virtual Attached attach(PerfRun& /*perf*/, const targets::Manager& /*manager*/) {
    return Attached::kYes;
  }

  // Why attach() failed, if another engine may replace this one; else empty.
  [[nodiscard]] virtual std::string why_replaceable() const { return {}; }
  // No other engine replaces this one: observer() passes on the events it held back.
  virtual void release_events() {}

  // Called twice a second while the events are enabled.
  virtual void on_tick(targets::Manager& /*manager*/) {}
  // A target has exited or exec'ed, and its map has been copied.
  virtual void forget(const targets::ActiveTarget& /*active*/) {}
  virtual void events_disabled() = 0;

  // MANAGER has switched its targets off: switches off what is still on. May be called again.
  // False: something may still be on; it was logged.
  [[nodiscard]] virtual bool switch_off(targets::Manager& /*manager*/) { return true; }
  // Nothing is on any more.
  virtual void dismiss() {}

  // Adds what the engine knows about the stacks: `stacks`, `interpreters`, `dropped`. Call it after
  // events_disabled().
  virtual void add_to(weave::RecordingContext& context) = 0;
  // What is permanently lost if perf's file cannot be post-processed, because no file has it and
  // `weave` cannot add it later; empty: nothing.
  [[nodiscard]] virtual std::string lost_if_incomplete() const { return {}; }
  // Adds its part to SUMMARY, which already has the post-processed files.
  virtual void summarize(RecordSummary& summary) = 0;
};

}  // namespace pyinject::record
