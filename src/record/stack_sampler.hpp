// The second engine: targets are not activated; a BPF program reads their frames at each sample
// (bpf/sampler.hpp). This collects its records while perf records.
#pragma once

#include "bpf/sampler.hpp"
#include "pyinject/base/cancellation.hpp"
#include "pyinject/base/log.hpp"
#include "pyinject/python/reason.hpp"
#include "pyinject/python/target.hpp"
#include "pyinject/record/sampler_stats.hpp"
#include "pyinject/weave/weave_flags.hpp"
#include "record/call_graph.hpp"
#include "record/event_program.hpp"
#include "record/native_refresh.hpp"
#include "record/perf_run.hpp"
#include "record/read_targets.hpp"
#include "weave/sampled_stacks.hpp"
#include "weave/weave.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <variant>
#include <vector>

namespace pyinject::record {

class StackSampler : public EventProgram {
 public:
  // NATIVE: also reads the C functions of each sample.
  [[nodiscard]] static std::variant<std::unique_ptr<StackSampler>, bpf::Unavailable> open(
      const weave::WeaveFlags& flags, bool native, base::Logger& logger);
  ~StackSampler() override;

  // From now on TARGET's stacks are read; the target is not modified. nullopt: success.
  // Thread-safe.
  [[nodiscard]] std::optional<python::Refusal> add(const python::Target& target) {
    return targets_->add(target);
  }
  // From now on the C functions of PID and of what it starts are read. Thread-safe.
  void add_native(base::Pid pid) {
    if (native_) {
      native_->add(pid);
    }
  }
  // The same for what perf records according to WISHES, until CANCEL. Call it before start().
  void add_native_of(const CallGraphWishes& wishes, const base::Cancellation& cancel);
  // Undoes add().
  void remove(const python::Target& target) { sampler_->remove(target.id.pid); }

  // CLOCK: that of the recording; nullopt: unreadable. Call it before the first add().
  void keep_time_by(std::optional<clockid_t> clock) {
    clock_ = clock;
    targets_->keep_time_by(clock);
  }
  enum class Attached {
    kYes,
    kNone,   // no sampling event accepts the program
    kEnded,  // perf exited
  };
  // Attaches to the events of RUN's perf, which are open and disabled, as its file tells of them.
  [[nodiscard]] Attached attach(PerfRun& run);
  // Attaches to the events of a running PERF, until leave(): Sampler::join(). False: no event
  // accepts the program.
  [[nodiscard]] bool join(base::Pid perf, const bpf::EventsOfPerf& events);
  void leave() { sampler_->leave(); }
  [[nodiscard]] bool by_clock() const { return sampler_->by_clock(); }
  // For the last attach() or join(); empty: success, or perf had exited.
  [[nodiscard]] const std::string& why_not_attached() const { return why_not_attached_; }
  [[nodiscard]] bool takes_all_events() const override {
    return attached_.refused == 0 && attached_.traced == 0;
  }
  [[nodiscard]] bool misses_newborn_threads() const override { return !only_tracepoints_; }
  [[nodiscard]] std::uint64_t births() const override { return sampler_->counters().births; }
  void record_only(std::span<const base::Pid> pids) override { sampler_->record_only(pids); }
  // Collects from now until stop(), before which the events must be disabled.
  void start();
  void stop();

  // Call it after stop().
  [[nodiscard]] weave::SampledStacks& stacks() { return stacks_; }
  [[nodiscard]] weave::Interpreters interpreters() { return targets_->interpreters(); }
  // Names and stacks dropped because their process reached a limit.
  [[nodiscard]] std::vector<weave::Dropped> dropped() const;
  // Without what only weaving determines: `unmatched` and `python_only`.
  [[nodiscard]] SamplerStats stats() const;

 private:
  StackSampler(const weave::WeaveFlags& flags, base::Logger& logger);
  void run();
  void take(const sample::Stack& stack);

  const bool tasks_;                           // requested
  std::vector<std::uint64_t> without_stacks_;  // tracepoints
  base::Logger& logger_;
  std::shared_ptr<base::RecordingBudget> budget_;
  weave::SampledStacks stacks_;
  std::unique_ptr<bpf::Sampler> sampler_;
  std::unique_ptr<NativeRefresh> native_;  // nullptr: C functions are not read
  std::optional<clockid_t> clock_;
  std::optional<ReadTargets> targets_;
  std::atomic<bool> ending_ = false;
  std::chrono::nanoseconds processor_time_{};
  std::string why_not_attached_;
  bpf::Sampler::Attached attached_;  // the last time
  bool only_tracepoints_ = false;
  std::thread thread_;
};

}  // namespace pyinject::record
