// The second engine: targets are not activated, a program in the kernel reads their frames at each
// sample (pyinject/bpf/sampler.hpp). Here its records are collected while perf records.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/bpf/sampler.hpp"
#include "pyinject/perf/perf_process.hpp"
#include "pyinject/python/injector.hpp"
#include "pyinject/session/sampler_stats.hpp"
#include "pyinject/weave/sampled_stacks.hpp"
#include "pyinject/weave/weave.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

namespace pyinject::session {

// For a message: what was found, the name of that, and what the user can do.
[[nodiscard]] std::string phrase(const bpf::Unavailable& why);

// To the manager it is an injector: what is activated is added to those that are read, and the
// target itself is not touched.
class StackSampler : public python::Injector {
 public:
  [[nodiscard]] static std::variant<std::unique_ptr<StackSampler>, bpf::Unavailable> open(
      const bpf::SamplerOptions& options, base::Logger& logger);
  ~StackSampler() override;

  [[nodiscard]] std::variant<python::Activation, python::Refusal> activate(
      const python::Target& target, const python::ActivateOptions& options) override;
  [[nodiscard]] std::variant<python::Deactivation, python::Refusal> deactivate(
      const python::Target& target, const python::DeactivateOptions& options) override;
  // Always a refusal: it would take a stop.
  [[nodiscard]] std::variant<python::StackUse, python::Refusal> stack_use(
      const python::Target& target, std::chrono::nanoseconds deadline) override;

  // CLOCK: that of the recording; nullopt: it cannot be read. To be told before any target.
  void keep_time_by(std::optional<clockid_t> clock) { clock_ = clock; }
  enum class Attached {
    kYes,
    kNone,   // of the events that sample takes the program
    kEnded,  // perf has
  };
  // To PERF's events, which are open and disabled.
  [[nodiscard]] Attached attach(perf::PerfProcess& perf);
  // To those of a PERF that runs, until leave(): Sampler::join(). False: none of them takes it.
  [[nodiscard]] bool join(base::Pid perf);
  void leave() { sampler_->leave(); }
  [[nodiscard]] bool by_clock() const { return sampler_->by_clock(); }
  // Of the last attach() or join(); empty: it was done, or perf had ended.
  [[nodiscard]] const std::string& why_not_attached() const { return why_not_attached_; }
  [[nodiscard]] bool takes_all_events() const { return refused_ == 0; }
  // PERF records the whole system: as Sampler::record_only().
  void record_only(std::span<const base::Pid> pids) { sampler_->record_only(pids); }
  // Collects from now on, until stop(): by then the events must be disabled.
  void start();
  void stop();

  // After stop().
  [[nodiscard]] weave::SampledStacks& stacks() { return stacks_; }
  [[nodiscard]] weave::Interpreters interpreters();
  // But for what is known only where the file is woven: `unmatched` and `python_only`.
  [[nodiscard]] SamplerStats stats() const;

 private:
  StackSampler(bool tasks, base::Logger& logger) : tasks_{tasks}, logger_{logger} {}
  // nullopt: it is read.
  [[nodiscard]] std::optional<python::Refusal> add(const python::Target& target);
  void note_refused(const bpf::Sampler::Attached& attached);
  void run();
  void take(const bpf::Stack& stack);

  const bool tasks_;  // are asked for
  base::Logger& logger_;
  weave::SampledStacks stacks_;
  std::unique_ptr<bpf::Sampler> sampler_;
  std::optional<clockid_t> clock_;
  std::mutex mutex_;  // of the next one
  weave::Interpreters interpreters_;
  std::atomic<bool> ending_ = false;
  std::chrono::nanoseconds processor_time_{};
  std::string why_not_attached_;
  std::size_t refused_ = 0;  // events
  std::thread thread_;
};

}  // namespace pyinject::session
