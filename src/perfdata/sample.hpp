// One sample, taken apart as far as its stack asks for it.
#pragma once

#include "perfdata/event.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace pyinject::perfdata {

// Whose it is and where it was.
struct SampleHead {
  std::uint64_t ip = 0;
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  bool has_address = false;  // of data: PERF_SAMPLE_ADDR, and not 0
};

// The spans point into the record that was parsed.
struct Sample {
  const Event* event = nullptr;
  std::uint16_t misc = 0;  // PERF_RECORD_MISC_*: where the processor was
  std::uint64_t ip = 0;
  std::uint64_t time = 0;
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::vector<std::uint64_t> chain;           // with PERF_CONTEXT_* marks, as recorded
  std::uint64_t register_abi = 0;             // PERF_SAMPLE_REGS_ABI_*; 0: no registers
  std::array<std::uint64_t, 64> registers{};  // by perf's number, <asm/perf_regs.h>
  std::uint64_t register_mask = 0;            // which of them there are
  Bytes stack;                                // the part of the dump that was filled
  std::uint64_t stack_asked = 0;              // the size of the dump in this record
  // What Output copies: up to the chain; RAW and BRANCH_STACK; all behind STACK_USER. Where the
  // event has no user stacks, registers are part of the last.
  Bytes before_chain;
  Bytes between;
  Bytes behind;
};

// A sample that no event took. Owns what its spans point to: not to be copied.
class MadeSample {
 public:
  struct Facts {
    std::uint16_t misc = 0;
    std::uint64_t ip = 0;
    std::uint64_t time = 0;
    std::uint32_t pid = 0;
    std::uint32_t tid = 0;
  };
  // As EVENT has them, which has to live as long. It ran on no processor (-1); what else a sample
  // may have is 0 or empty.
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
