// Unwinds the callchain of one sample from its registers and its stack dump.
#pragma once

#include "base/budget.hpp"
#include "unwind/address_spaces.hpp"
#include "unwind/objects.hpp"
#include "unwind/registers.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pyinject::unwind {

// The stack dump made by perf: BYTES, starting at the stack pointer BEGIN.
struct StackDump {
  std::uint64_t begin = 0;
  std::span<const std::byte> bytes;
  bool cut = false;  // the stack is larger; else the dump ends where the stack's memory ends

  [[nodiscard]] std::optional<std::uint64_t> word_at(std::uint64_t address) const;
};

// A trampoline of CPython, for which no file has unwind information.
struct Trampoline {
  std::uint64_t begin = 0;
  std::uint64_t size = 0;  // from the perf map: tells the variants apart
};

class TrampolineFinder {
 public:
  virtual ~TrampolineFinder() = default;
  TrampolineFinder() = default;
  TrampolineFinder(const TrampolineFinder&) = delete;
  TrampolineFinder& operator=(const TrampolineFinder&) = delete;

  [[nodiscard]] virtual std::optional<Trampoline> find(ProcessNumber pid,
                                                       std::uint64_t address) const = 0;
};

enum class EndOfStack {
  kWhole,          // up to the thread's first function
  kCut,            // the dump ends earlier
  kNoInformation,  // FILE has no unwind tables for the function, and frame pointers did not help
  kBroken,         // the stack is invalid
  kLimit,          // kMostFrames
};

struct Unwound {
  EndOfStack end = EndOfStack::kWhole;
  const MappedFile* file = nullptr;  // kNoInformation: nullptr if nothing is mapped there
  std::size_t by_frame_pointer = 0;  // steps without anything better
  // The process has reached its limit: the stack ends at the next step.
  bool too_slow = false;   // limit on steps
  bool too_large = false;  // limit on bytes, for the unwind tables of FILE
};

inline constexpr std::size_t kMostFrames = 4000;

class Unwinder {
 public:
  // BUDGET: for steps spent on expressions and rows of the unwind tables.
  Unwinder(
      const AddressSpaces& spaces, Objects& objects, const TrampolineFinder& trampolines,
      std::shared_ptr<base::RecordingBudget> budget = std::make_shared<base::RecordingBudget>())
      : spaces_{spaces}, objects_{objects}, trampolines_{trampolines}, budget_{std::move(budget)} {}

  // Appends the program counters to CHAIN, innermost first. Those of callers are their return
  // addresses minus one, to be inside the calling function even if the call is its last
  // instruction; perf's own unwinder does the same. REGISTERS_OF: unless null, gets the registers
  // of each frame; their stack pointers are the bounds of the frames.
  [[nodiscard]] Unwound unwind(ProcessNumber pid, Time time, Registers registers,
                               const StackDump& stack, std::vector<std::uint64_t>& chain,
                               std::vector<Registers>* registers_of = nullptr);

  // Whether at ADDRESS, inside a function, the frame pointer points to the caller's frame pointer
  // and return address, so that frame pointers lead to the caller. nullopt: no unwind tables.
  [[nodiscard]] std::optional<bool> keeps_frame(ProcessNumber pid, Time time,
                                                std::uint64_t address);

 private:
  struct Known {
    Rule::Kind kind = Rule::Kind::kNone;
    const Rule* rule = nullptr;
    std::optional<Trampoline> trampoline;
    const MappedFile* file = nullptr;
    Time from = 0;  // valid for [from, until)
    Time until = 0;
    bool refused = false;  // the unwind tables of FILE exceed the limit
  };
  // Limit of one call, and the family that is charged.
  struct Payer {
    base::Budget::Spender family = 0;
    base::Allowance steps;
  };
  [[nodiscard]] Payer payer_of(ProcessNumber pid) const;
  void settle(const Payer& payer);
  [[nodiscard]] Known look_up(ProcessNumber pid, Time time, std::uint64_t address, Payer& payer);
  [[nodiscard]] Unwound walk(ProcessNumber pid, Time time, Registers registers,
                             const StackDump& stack, std::vector<std::uint64_t>& chain,
                             std::vector<Registers>* registers_of, Payer& payer);

  const AddressSpaces& spaces_;
  Objects& objects_;
  const TrampolineFinder& trampolines_;
  std::shared_ptr<base::RecordingBudget> budget_;
  std::unordered_map<ProcessNumber, std::unordered_map<std::uint64_t, Known>> known_;
};

}  // namespace pyinject::unwind
