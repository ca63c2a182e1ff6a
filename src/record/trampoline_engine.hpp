// The trampoline engine: switches CPython's own perf trampoline on in the targets, and reads the
// functions that already run from their memory.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/record/plan.hpp"
#include "pyinject/targets/guard.hpp"
#include "record/command_interpreter.hpp"
#include "record/engine.hpp"
#include "record/frame_watch.hpp"
#include "record/launched_processes.hpp"
#include "record/trampoline_unwinding.hpp"
#include "targets/forked_children.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace pyinject::record {

class TrampolineEngine : public Engine {
 public:
  TrampolineEngine(const RecordPlan& plan, python::Detector& detector, python::Injector& injector,
                   base::Logger& logger, RecordObserver& observer, Unwinding unwinding);

  [[nodiscard]] python::Detector& detector() override { return detector_; }
  [[nodiscard]] targets::TargetHandler& target_handler() override { return handler_; }
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
  [[nodiscard]] bool activated(const targets::ActiveTarget& active) override;
  [[nodiscard]] EventProgram* program() override { return unwinding_.program(); }
  [[nodiscard]] Attached attach(PerfRun& perf, const targets::Manager& manager) override;
  [[nodiscard]] std::string why_replaceable() const override;
  void on_tick(targets::Manager& manager) override;
  void forget(const targets::ActiveTarget& active) override;
  void events_disabled() override;
  [[nodiscard]] bool switch_off(targets::Manager& manager) override {
    return children_.switch_off(manager);
  }
  void dismiss() override;
  void add_to(weave::RecordingContext& context) override;
  [[nodiscard]] std::string lost_if_incomplete() const override {
    return unwinding_.program() == nullptr ? "" : "callers of each sample";
  }
  void summarize(RecordSummary& summary) override;

 private:
  void add_map_writer(const python::Target& target);

  const RecordPlan& plan_;
  python::Detector& detector_;
  python::Injector& injector_;
  targets::TrampolineHandler handler_{injector_};
  base::Logger& logger_;
  RecordObserver& observer_;
  // Destroyed last: switches off what is still on.
  std::unique_ptr<targets::Guard> guard_;
  std::optional<CommandInterpreter> interpreter_;
  bool asked_by_environment_ = false;
  std::unique_ptr<LaunchedProcesses> launched_;  // of the command, if that is the target
  targets::ForkedChildren children_;
  FrameWatch frames_;
  TrampolineUnwinding unwinding_;
  std::mutex mutex_;  // protects map_writers_
  std::unordered_map<std::uint32_t, weave::MapWriter> map_writers_;
};

}  // namespace pyinject::record
