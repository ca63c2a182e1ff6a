// How long threads were off their processor, from the records of their switches. Pure.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace pyinject::weave {

class OffCpu {
 public:
  // In any order, to be followed by complete(). Times are those of the recording's clock.
  void takes_processor(std::uint32_t tid, std::uint64_t time) { ends_[tid].push_back(time); }
  void exits(std::uint32_t tid, std::uint64_t time) { ends_[tid].push_back(time); }
  // It could have run on.
  void is_preempted(std::uint32_t tid, std::uint64_t time) { preempted_[tid].push_back(time); }
  void ends(std::uint64_t time) { end_ = time > end_ ? time : end_; }
  void complete();

  struct Absence {
    std::uint64_t nanoseconds = 0;
    bool preempted = false;
  };
  // Of the thread that left its processor at TIME; its own record of that comes behind the sample.
  // Until the end of the recording, if it did not come back.
  [[nodiscard]] Absence absence(std::uint32_t tid, std::uint64_t time) const;

 private:
  using Times = std::unordered_map<std::uint32_t, std::vector<std::uint64_t>>;
  Times ends_;
  Times preempted_;
  std::uint64_t end_ = 0;
};

}  // namespace pyinject::weave
