// Computes how long system calls took, from the times at which threads entered and left them. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace pyinject::weave {

class CallDurations {
 public:
  static constexpr std::size_t kMostCalls = 128;  // different system calls

  // Call these in any order, then complete(). Times are by the recording's clock. CALL: any number
  // less than kMostCalls.
  void enters(std::uint32_t tid, std::uint64_t time, std::size_t call) { add(tid, time, call, 0); }
  void leaves(std::uint32_t tid, std::uint64_t time, std::size_t call) { add(tid, time, call, 1); }
  // The thread was seen in user space.
  void runs(std::uint32_t tid, std::uint64_t time);
  // Samples of this thread may be missing before TIME.
  void loses(std::uint32_t tid, std::uint64_t time) { losses_[tid].push_back(time); }
  void exits(std::uint32_t tid, std::uint64_t time) { exits_[tid].push_back(time); }
  void ends(std::uint64_t time) { end_ = time > end_ ? time : end_; }
  void complete();

  struct Duration {
    std::uint64_t nanoseconds = 0;
    bool lasts = false;  // the call had not returned when the recording ended
  };
  // For the thread that entered CALL at TIME. A call without an end lasts until its thread exits or
  // the recording ends. nullopt: the end is unknown, because its record may be lost or there are
  // too many.
  [[nodiscard]] std::optional<Duration> of(std::uint32_t tid, std::uint64_t time,
                                           std::size_t call) const;

 private:
  static constexpr unsigned kCodeBits = 8;  // the call, and whether it is its end
  static constexpr std::size_t kMostMoments = std::size_t{1} << 27U;  // 1 GiB

  [[nodiscard]] bool is_lossy(std::uint32_t tid, std::uint64_t from, std::uint64_t to) const;
  [[nodiscard]] std::optional<std::uint64_t> packed(std::uint64_t time, std::size_t call,
                                                    unsigned is_end) const;
  void add(std::uint32_t tid, std::uint64_t time, std::size_t call, unsigned is_end);

  // Times are relative to BASE, to leave room for the code: 2^56 ns are two years.
  std::optional<std::uint64_t> base_;
  std::unordered_map<std::uint32_t, std::vector<std::uint64_t>> moments_;
  std::unordered_map<std::uint32_t, std::vector<std::uint64_t>> losses_;
  std::unordered_map<std::uint32_t, std::vector<std::uint64_t>> exits_;
  std::unordered_map<std::uint32_t, std::uint64_t> last_seen_;  // in user space
  std::size_t count_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace pyinject::weave
