// The periods of samples that stand for more than the kernel says: how long a thread was off-CPU,
// how long a system call took, how much memory it mapped and keeps.
#pragma once

#include "perfdata/input.hpp"
#include "weave/call_durations.hpp"
#include "weave/kept_mappings.hpp"
#include "weave/off_cpu.hpp"
#include "weave/tally.hpp"
#include "weave/waits.hpp"
#include "weave/weave.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

namespace pyinject::weave {

class SamplePeriods {
 public:
  SamplePeriods(const WeaveOptions& options, const RecordingContext& context,
                const perfdata::Input& input, Tally& tally);

  // Call it for each record in the order of the file, then complete(), which may read INPUT again.
  void learn(const perfdata::Record& record);
  void complete(perfdata::Input& input);

  // Whether samples of EVENT get a period; the same for all events with these attributes.
  [[nodiscard]] bool changes(const perfdata::Event& event) const;
  struct Period {
    std::optional<std::uint64_t> value = {};  // nullopt: the sample's own
    bool preempted = false;                   // of a thread that was still runnable
  };
  [[nodiscard]] Period of(const perfdata::Sample& sample);
  // Whether a sample is only here for its time: the end of a call, memory that is not kept.
  [[nodiscard]] bool is_left_out(const perfdata::Record& record) const;

  // Whether samples of switches get their times off-CPU.
  [[nodiscard]] bool has_off_cpu() const { return has_off_cpu_; }
  // The wait of THREAD, which was waiting when the recording began; nullopt: a sample shows it.
  [[nodiscard]] std::optional<OffCpu::FirstWait> first_wait(const WaitingThread& thread) const;

 private:
  // An event of a timed system call.
  struct CallEvent {
    std::size_t call = 0;  // its number in the flags
    bool is_end = false;
  };

  // An event of a call that maps memory or gives it back.
  struct MemoryEvent {
    MemoryCall::Kind kind{};
    bool is_end = false;
    [[nodiscard]] bool of_allocator() const {
      return kind == MemoryCall::Kind::kAllocate || kind == MemoryCall::Kind::kFree;
    }
    // Whether its samples may own memory.
    [[nodiscard]] bool owns() const {
      return !is_end && kind != MemoryCall::Kind::kUnmap && kind != MemoryCall::Kind::kFree;
    }
  };

  void choose_switches();
  [[nodiscard]] const perfdata::Event* event_of_each_hit(std::uint64_t tracepoint) const;
  void choose_calls();
  void choose_memory_calls();
  void learn_switches(const perfdata::Record& record, std::uint64_t time);
  void learn_calls(const perfdata::Record& record, std::uint64_t time);
  void learn_memory(perfdata::Input& input);
  void learn_memory_call(const perfdata::Sample& sample);
  [[nodiscard]] bool keeps_no_memory(const perfdata::Record& record) const;

  const WeaveOptions& options_;
  const RecordingContext& context_;
  const perfdata::Input& input_;
  WeaveSummary& summary_;
  bool has_off_cpu_;
  const perfdata::Event* each_switch_ = nullptr;  // samples the switches, if it is the only one
  OffCpu off_cpu_;
  std::unordered_map<const perfdata::Event*, CallEvent> call_events_;
  CallDurations calls_;
  std::unordered_map<const perfdata::Event*, MemoryEvent> memory_events_;
  KeptMappings kept_;
  KeptMappings blocks_;           // of allocators that tell them
  std::uint64_t first_time_ = 0;  // first record time of the recording; 0: records have no time
};

}  // namespace pyinject::weave
