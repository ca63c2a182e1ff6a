// The second engine: targets are not activated, a program in the kernel reads their frames at each
// sample (bpf/sampler.hpp). Here its records are collected while perf records.
#pragma once

#include "bpf/sampler.hpp"
#include "perf/perf_process.hpp"
#include "pyinject/base/log.hpp"
#include "pyinject/python/reason.hpp"
#include "pyinject/python/target.hpp"
#include "pyinject/record/sampler_stats.hpp"
#include "pyinject/weave/weave_flags.hpp"
#include "weave/sampled_stacks.hpp"
#include "weave/weave.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

namespace pyinject::session {

// For a message: what was found, the name of that, and what the user can do.
[[nodiscard]] std::string phrase(const bpf::Unavailable& why);

class StackSampler {
 public:
  // Uses GIL and TASKS of FLAGS.
  [[nodiscard]] static std::variant<std::unique_ptr<StackSampler>, bpf::Unavailable> open(
      const weave::WeaveFlags& flags, base::Logger& logger);
  ~StackSampler();
  StackSampler(const StackSampler&) = delete;
  StackSampler& operator=(const StackSampler&) = delete;

  // TARGET's stacks are read from now on; nothing is done to it. nullopt: well. Of any thread.
  [[nodiscard]] std::optional<python::Refusal> add(const python::Target& target);
  // They are no longer.
  void remove(const python::Target& target) { sampler_->remove(target.id.pid); }

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
  // Names and stacks of processes that have used up their share.
  [[nodiscard]] std::vector<weave::Dropped> dropped() const;
  // But for what is known only where the file is woven: `unmatched` and `python_only`.
  [[nodiscard]] SamplerStats stats() const;

 private:
  StackSampler(bool tasks, base::Logger& logger);
  [[nodiscard]] std::optional<python::Refusal> read_from(const python::Target& target);
  void warn_without_tasks(const python::Target& target);
  void note_refused(const bpf::Sampler::Attached& attached);
  void run();
  void take(const bpf::Stack& stack);

  const bool tasks_;  // are asked for
  base::Logger& logger_;
  std::shared_ptr<base::RecordingBudget> budget_;
  weave::SampledStacks stacks_;
  std::unique_ptr<bpf::Sampler> sampler_;
  std::optional<clockid_t> clock_;
  std::mutex mutex_;  // of the next two
  weave::Interpreters interpreters_;
  std::set<std::string> without_tasks_;  // versions that the user was warned of
  std::atomic<bool> ending_ = false;
  std::chrono::nanoseconds processor_time_{};
  std::string why_not_attached_;
  std::size_t refused_ = 0;  // events
  std::thread thread_;
};

}  // namespace pyinject::session
