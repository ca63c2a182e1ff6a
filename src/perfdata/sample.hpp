// A parsed sample, in the detail that its stack needs.
#pragma once

#include "perfdata/event.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace pyinject::perfdata {

// Process, thread and address of a sample.
struct SampleHead {
  std::uint64_t ip = 0;
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  bool has_address = false;  // of data: nonzero PERF_SAMPLE_ADDR
};

// The spans point into the record that was parsed.
struct Sample {
  const Event* event = nullptr;
  std::uint16_t misc = 0;  // PERF_RECORD_MISC_*: the processor's mode
  std::uint64_t ip = 0;
  std::uint64_t time = 0;
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::uint64_t period = 1;          // the event's own, if samples have none
  std::vector<std::uint64_t> chain;  // with PERF_CONTEXT_* marks, as recorded
  // With PERF_FORMAT_GROUP and PERF_FORMAT_ID ("{a,b}:S"): the counters of all events of the group.
  struct Counter {
    std::uint64_t id = 0;
    std::uint64_t value = 0;  // since the event was opened
  };
  std::vector<Counter> group{};
  std::uint64_t register_abi = 0;             // PERF_SAMPLE_REGS_ABI_*; 0: no registers
  std::array<std::uint64_t, 64> registers{};  // by perf's number, <asm/perf_regs.h>
  std::uint64_t register_mask = 0;            // which of them are present
  // Output writes it in place of IP, as an address in user space.
  std::optional<std::uint64_t> replaced_ip{};
  Bytes stack;                    // the filled part of the dump
  std::uint64_t stack_asked = 0;  // requested size of the dump in this record
  // The parts that Output copies: up to the chain; RAW and BRANCH_STACK; everything after
  // STACK_USER. If the event has no user stacks, registers are in the last part.
  Bytes before_chain;
  Bytes between;
  Bytes behind;
};

// A synthesized sample. Owns the data of its spans: not copyable.
class MadeSample {
 public:
  struct Facts {
    std::uint16_t misc = 0;
    std::uint64_t ip = 0;
    std::uint64_t time = 0;
    std::uint32_t pid = 0;
    std::uint32_t tid = 0;
  };
  // Has the fields of EVENT, which must outlive this object. It ran on no processor (-1); all other
  // fields are 0 or empty.
  MadeSample(const Event& event, const Facts& facts);
  MadeSample(const MadeSample&) = delete;
  MadeSample& operator=(const MadeSample&) = delete;

  [[nodiscard]] const Sample& get() const { return sample_; }

 private:
  Sample sample_;
  std::vector<std::byte> before_chain_;
  std::vector<std::byte> between_;
  std::vector<std::byte> behind_;
};

}  // namespace pyinject::perfdata
