// How long threads were off their processor, from the records of their switches. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace pyinject::weave {

class OffCpu {
 public:
  // In any order, to be followed by complete(). Times are those of the recording's clock.
  void takes_processor(std::uint32_t tid, std::uint64_t time) { add(tid, time, kIn); }
  void leaves_processor(std::uint32_t tid, std::uint64_t time, bool preempted) {
    add(tid, time, preempted ? kPreempted : kOut);
  }
  // When it leaves the processor. Not to be told where several events sample that.
  void is_sampled(std::uint32_t tid, std::uint64_t time) { add(tid, time, kSample); }
  // It gets this number, by its birth or an execve(2).
  void begins(std::uint32_t tid, std::uint64_t time) { lives_[tid].push_back({time, true}); }
  void exits(std::uint32_t tid, std::uint64_t time) { lives_[tid].push_back({time, false}); }
  void ends(std::uint64_t time) { end_ = time > end_ ? time : end_; }
  void complete();

  struct Absence {
    std::uint64_t nanoseconds = 0;
    bool preempted = false;  // it could have run on
  };
  // Of the thread that left its processor at TIME; its own record of that comes behind the sample.
  // Until the end of the recording, if it did not come back. Where the record was lost by which it
  // came back, until something else tells that it had. nullopt: it had exited before, and does not
  // wait.
  [[nodiscard]] std::optional<Absence> absence(std::uint32_t tid, std::uint64_t time) const;

  struct FirstWait {
    std::uint64_t begin = 0;
    std::optional<std::uint64_t> until = {};  // nullopt: no record shows that the thread ran again
  };
  // The wait of a thread that waited at SEEN, as far as it is later than BEGIN, when the recording
  // began. nullopt: a sample shows this wait. The records of switches begin before the samples do.
  [[nodiscard]] std::optional<FirstWait> first_wait(std::uint32_t tid, std::uint64_t begin,
                                                    std::uint64_t seen) const;
  // That of the recording, or the last record.
  [[nodiscard]] std::uint64_t end() const { return end_; }

 private:
  // Of those at the same time the earlier one is lower. Times of 146 years have room beside it.
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
