// An engine that does nothing but record the calls made to it.
#pragma once

#include "pyinject/base/error.hpp"
#include "pyinject/fake/detector.hpp"
#include "pyinject/fake/injector.hpp"
#include "record/engine.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace pyinject::test {

// Outlives the engine: the answers it gives and the calls it received.
struct EngineScript {
  bool before_perf = false;     // takes_targets_before_perf()
  bool misses_newborn = false;  // program()->misses_newborn_threads()
  record::Engine::Attached attached = record::Engine::Attached::kYes;
  bool attach_throws = false;
  std::string why_replaceable = {};
  std::vector<std::string> calls = {};
};

class FakeEngine : public record::Engine {
 public:
  FakeEngine(EngineScript& script, python::Detector& detector, python::Injector& injector,
             record::RecordObserver& observer)
      : script_{script}, detector_{detector}, handler_{injector}, observer_{observer} {}

  [[nodiscard]] python::Detector& detector() override { return detector_; }
  [[nodiscard]] targets::TargetHandler& target_handler() override { return handler_; }
  [[nodiscard]] record::RecordObserver& observer() override { return observer_; }
  void begin() override { note("begin"); }
  [[nodiscard]] record::CallGraphChoice choose_call_graph(
      const std::vector<python::Target>& /*targets*/, const record::CallGraphWishes& /*wishes*/,
      const base::Cancellation& /*interrupted*/) override {
    note("choose_call_graph");
    return {.arguments = {"--call-graph", "fp"}, .note = {}};
  }
  [[nodiscard]] bool takes_targets_before_perf() const override { return script_.before_perf; }
  void before_activation(const python::Target& /*target*/) override { note("before_activation"); }
  [[nodiscard]] bool activated(const targets::ActiveTarget& /*active*/) override {
    note("activated");
    return true;
  }
  [[nodiscard]] record::EventProgram* program() override { return &program_; }
  [[nodiscard]] Attached attach(record::PerfRun& /*perf*/,
                                const targets::Manager& /*manager*/) override {
    note("attach");
    if (script_.attach_throws) {
      throw base::Error{"the engine broke"};
    }
    return script_.attached;
  }
  [[nodiscard]] std::string why_replaceable() const override { return script_.why_replaceable; }
  void release_events() override { note("release_events"); }
  void events_disabled() override { note("events_disabled"); }
  [[nodiscard]] bool switch_off(targets::Manager& /*manager*/) override {
    note("switch_off");
    return true;
  }
  void dismiss() override { note("dismiss"); }
  void add_to(weave::RecordingContext& /*context*/) override { note("add_to"); }
  void summarize(record::RecordSummary& /*summary*/) override { note("summarize"); }

 private:
  struct Program : record::EventProgram {
    explicit Program(const EngineScript& of) : script{of} {}
    [[nodiscard]] bool misses_newborn_threads() const override { return script.misses_newborn; }
    [[nodiscard]] std::uint64_t births() const override { return 0; }
    [[nodiscard]] bool takes_all_events() const override { return false; }
    void record_only(std::span<const base::Pid> /*pids*/) override {}
    const EngineScript& script;
  };
  void note(const char* call) { script_.calls.emplace_back(call); }

  EngineScript& script_;
  Program program_{script_};
  python::Detector& detector_;
  targets::TrampolineHandler handler_;
  record::RecordObserver& observer_;
};

}  // namespace pyinject::test
