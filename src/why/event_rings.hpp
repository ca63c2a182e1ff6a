// Events of this process on all processors: samples of CPU time and of page faults, and every
// context switch.
#pragma once

#include "events/processor_events.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace pyinject::why {

// A record of a ring. Pure: parse_record() does not trust the bytes.
struct RingRecord {
  enum class Kind { kSample, kIn, kOut, kPreempted, kStart, kExit, kLost };
  Kind kind = Kind::kLost;
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::uint64_t time = 0;  // CLOCK_MONOTONIC, nanoseconds
  bool at_switch = false;  // kSample: of a context switch, not of CPU time; by EventRings
  bool at_fault = false;   // kSample: of kFaultPeriod page faults; by EventRings
  bool user = false;       // kSample: in user space
  std::uint64_t address = 0;
  std::vector<std::uint64_t> kernel = {};  // kSample: callchain, innermost first
  std::uint64_t lost = 0;                  // kLost
};
// False: another kind of record, or damaged. Keeps the memory of RECORD.
[[nodiscard]] bool parse_record(std::span<const std::byte> bytes, RingRecord& record);

inline constexpr std::uint64_t kFaultPeriod = 32;

class EventRings {
 public:
  // All disabled. A string says why not, with the remedy.
  [[nodiscard]] static std::variant<EventRings, std::string> open(std::chrono::nanoseconds period);

  void enable();
  void disable();
  // Passes the pending records on, in order of time for each CPU only.
  void read(const std::function<void(const RingRecord&)>& take);

 private:
  EventRings(events::ProcessorEvents switches, events::ProcessorEvents clock,
             std::optional<events::ProcessorEvents> faults)
      : switches_{std::move(switches)}, clock_{std::move(clock)}, faults_{std::move(faults)} {}
  // Each in rings of its own: ids do not tell their samples apart (docs/kernel-notes.md).
  events::ProcessorEvents switches_;
  events::ProcessorEvents clock_;
  std::optional<events::ProcessorEvents> faults_;  // nullopt: there is no memory for their rings
  RingRecord parsed_;
};

}  // namespace pyinject::why
