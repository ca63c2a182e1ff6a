// CPython's own perf trampoline, switched on in the targets; the functions that run already are
// read from their memory.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/record/options.hpp"
#include "pyinject/targets/guard.hpp"
#include "record/command_interpreter.hpp"
#include "record/engine.hpp"
#include "record/frame_watch.hpp"
#include "record/launched_processes.hpp"
#include "targets/forked_children.hpp"

#include <memory>
#include <optional>

namespace pyinject::session {

class TrampolineEngine : public Engine {
 public:
  TrampolineEngine(const RecordOptions& options, python::Detector& detector,
                   python::Injector& injector, base::Logger& logger, RecordObserver& observer);

  [[nodiscard]] python::Detector& detector() override { return detector_; }
  [[nodiscard]] TargetHandler& target_handler() override { return handler_; }
  [[nodiscard]] RecordObserver& observer() override { return observer_; }
  // Starts the guard.
  void begin() override;
  [[nodiscard]] std::map<std::string, std::string> environment_of_command() override;
  void command_held(base::Pid command) override;
  [[nodiscard]] CallGraphChoice choose_call_graph(const std::vector<python::Target>& targets,
                                                  const CallGraphWishes& wishes,
                                                  const base::Cancellation& interrupted) override;
  [[nodiscard]] bool takes_targets_before_perf() const override { return false; }
  void before_activation(const python::Target& target) override;
  [[nodiscard]] bool activated(const ActiveTarget& active) override;
  void on_tick(Manager& manager) override;
  void forget(const ActiveTarget& active) override;
  void events_disabled() override { frames_.stop(); }
  [[nodiscard]] bool switch_off(Manager& manager) override { return children_.switch_off(manager); }
  void dismiss() override;
  void add_to(weave::RecordingContext& context) override;
  void summarize(RecordSummary& summary) override;

 private:
  [[nodiscard]] CallGraphChoice choose_for_command(const CallGraphWishes& wishes);

  const RecordOptions& options_;
  python::Detector& detector_;
  python::Injector& injector_;
  TrampolineHandler handler_{injector_};
  base::Logger& logger_;
  RecordObserver& observer_;
  // Destroyed last: it switches off what is still on.
  std::unique_ptr<Guard> guard_;
  std::optional<CommandInterpreter> interpreter_;
  bool asked_by_environment_ = false;
  std::unique_ptr<LaunchedProcesses> launched_;  // of the command, when that is the target
  ForkedChildren children_;
  FrameWatch frames_;
};

}  // namespace pyinject::session
