// Samples running Pythons for a live view, by BPF or else by reading: no perf, no file, no stop, no
// change.
#pragma once

#include "bpf/sampler.hpp"
#include "live/kept_samples.hpp"
#include "live/profile.hpp"
#include "live/stack_source.hpp"
#include "live/thread_names.hpp"
#include "live/use_judge.hpp"
#include "live/wait_reader.hpp"
#include "procfs/stat.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/remote_address.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/targets/scope.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace pyinject::live {

struct SamplerOptions {
  std::vector<base::Pid> pids;  // empty: all in SCOPE
  targets::Scope scope;
  bool children = false;  // also all descendants of PIDS
  std::chrono::nanoseconds period{};
  bool gil = false;
  bool tasks = false;  // and greenlets
  bool keep = false;   // all samples, for kept()
};

class LiveSampler {
 public:
  // Starts to sample. Returns a string that says why not, with the remedy. Throws base::Error.
  [[nodiscard]] static std::variant<std::unique_ptr<LiveSampler>, std::string> start(
      const SamplerOptions& options);

  // Why it reads the stacks from outside, not by BPF; empty: it does not.
  [[nodiscard]] const std::string& no_bpf() const { return no_bpf_; }
  // Readable when collect() has something to do.
  [[nodiscard]] int fd() const { return source_->fd(); }
  // Takes the pending samples into the profile. Call it at least every kMostOften.
  static constexpr auto kMostOften = WaitReader::kMostOften;
  void collect();
  // Adds processes that have started or executed a program since, and drops those that have exited.
  // Returns when to call it again: so often that it takes little processor time.
  std::chrono::nanoseconds look();
  // Ends an interval of the profile, which had this LENGTH.
  void end_interval(std::chrono::nanoseconds length);
  // Processes that are sampled.
  [[nodiscard]] std::size_t processes() const { return known_.size() - refused_; }
  // Why processes of PIDS are not sampled; one line each.
  [[nodiscard]] const std::vector<std::string>& refusals() const { return refusals_; }
  // All processes of PIDS, and the descendants that are sampled, have exited.
  [[nodiscard]] bool ended() const { return !options_.pids.empty() && known_.empty(); }
  [[nodiscard]] std::uint64_t lost() const { return source_->lost(); }
  // The first interval.
  [[nodiscard]] std::chrono::steady_clock::time_point began() const { return began_; }

  [[nodiscard]] Profile& profile() { return profile_; }
  // Names the C functions that the profile has by now: call it before they are shown.
  void name_c_functions() { uses_.name_c_functions(profile_); }
  // All samples and waits since the start, if OPTIONS.keep; once.
  [[nodiscard]] report::Profile kept();

 private:
  struct Known {
    base::ProcessId id;
    base::RemoteAddress stack_begin;  // differs after an exec
    bool refused = false;
    int retries = 0;  // of a process that may still load its interpreter
  };
  using Stats = std::map<base::Pid, procfs::Stat>;

  explicit LiveSampler(const SamplerOptions& options);
  [[nodiscard]] Stats candidates() const;
  void add_descendants(const Stats& all, Stats& chosen) const;
  void examine(const std::vector<base::Pid>& pids);
  // Returns whether it is sampled now.
  bool add(base::Pid pid, const python::Detection& detection);
  [[nodiscard]] bool wants(base::Pid pid);
  void on_wait(const sample::Stack& stack, Use use, std::chrono::nanoseconds length);
  void on_stack(const sample::Stack& stack, std::uint64_t count, bool in_greenlet);
  void on_code(sample::Code code);
  // What is known of a process that is sampled no longer, or whose program is another one.
  void forget(base::Pid pid);

  const SamplerOptions options_;
  Profile profile_;
  ThreadNames names_{profile_};
  UseJudge uses_;
  std::optional<KeptSamples> kept_;
  std::unique_ptr<python::Detector> detector_ = python::make_detector(python::Purpose::kObserve);
  std::unique_ptr<StackSource> source_;
  WaitReader waits_;
  std::string no_bpf_;
  std::map<base::Pid, Known> known_;
  std::map<base::Pid, base::ProcessId> named_;  // PIDS: not later processes with these pids
  std::chrono::steady_clock::time_point began_;
  bool looked_ = false;
  std::size_t refused_ = 0;
  std::vector<std::string> refusals_;
  std::map<base::Pid, bool> wanted_;  // processes that forked since the latest look()
};

}  // namespace pyinject::live
