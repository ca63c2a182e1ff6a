// Computes how long threads were off-CPU, from context switch records. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace pyinject::weave {

class OffCpu {
 public:
  // Call these in any order, then complete(). Times are by the recording's clock.
  void takes_processor(std::uint32_t tid, std::uint64_t time) { add(tid, time, kIn); }
  void leaves_processor(std::uint32_t tid, std::uint64_t time, bool preempted) {
    add(tid, time, preempted ? kPreempted : kOut);
  }
  // A sample was taken when the thread left the processor. Do not call it if several events sample
  // that.
  void is_sampled(std::uint32_t tid, std::uint64_t time) { add(tid, time, kSample); }
  // The thread got this tid, by starting or by execve(2).
  void begins(std::uint32_t tid, std::uint64_t time) { lives_[tid].push_back({time, true}); }
  void exits(std::uint32_t tid, std::uint64_t time) { lives_[tid].push_back({time, false}); }
  void ends(std::uint64_t time) { end_ = time > end_ ? time : end_; }
  void complete();

  struct Absence {
    std::uint64_t nanoseconds = 0;
    bool preempted = false;  // still runnable
  };
  // For the thread that left its processor at TIME; its switch record follows the sample. Lasts
  // until the end of the recording if the thread did not run again. If the record of its return was
  // lost, lasts until other records show it. nullopt: the thread had exited and does not wait.
  [[nodiscard]] std::optional<Absence> absence(std::uint32_t tid, std::uint64_t time) const;

  struct FirstWait {
    std::uint64_t begin = 0;
    std::optional<std::uint64_t> until = {};  // nullopt: no record shows that the thread ran again
  };
  // The wait of a thread that was waiting at SEEN, without the part before BEGIN, the start of the
  // recording. nullopt: a sample shows this wait. Switch records start before the samples do.
  [[nodiscard]] std::optional<FirstWait> first_wait(std::uint32_t tid, std::uint64_t begin,
                                                    std::uint64_t seen) const;
  // End of the recording, or time of the last record.
  [[nodiscard]] std::uint64_t end() const { return end_; }

 private:
  // At equal times the earlier kind has the lower value. The rest of the bits holds 146 years.
  enum Kind : std::uint8_t { kSample, kOut, kPreempted, kIn };
  static constexpr unsigned kKindBits = 2;
  struct Life {
    std::uint64_t time = 0;
    bool begins = false;
  };

  static std::uint64_t packed(std::uint64_t time, Kind kind) { return time << kKindBits | kind; }
  void add(std::uint32_t tid, std::uint64_t time, Kind kind) {
    switches_[tid].push_back(packed(time, kind));
  }

  std::unordered_map<std::uint32_t, std::vector<std::uint64_t>> switches_;  // time and kind
  std::unordered_map<std::uint32_t, std::vector<Life>> lives_;
  std::uint64_t end_ = 0;
};

}  // namespace pyinject::weave
