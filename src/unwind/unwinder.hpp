// From the registers and the copied stack of one sample to its callchain.
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

// What perf copied of a stack: BYTES from the stack pointer BEGIN on.
struct StackDump {
  std::uint64_t begin = 0;
  std::span<const std::byte> bytes;
  bool cut = false;  // there is more above; else they end where the stack's memory ends

  [[nodiscard]] std::optional<std::uint64_t> word_at(std::uint64_t address) const;
};

// One of CPython's trampolines, of which no file tells how to step out of it.
struct Trampoline {
  std::uint64_t begin = 0;
  std::uint64_t size = 0;  // as the perf map has it: tells the shapes apart
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
  kCut,            // the dump ends before
  kNoInformation,  // FILE has no unwind tables for that function, and no frame pointer helped
  kBroken,         // what was found is no stack
  kLimit,          // kMostFrames
};

struct Unwound {
  EndOfStack end = EndOfStack::kWhole;
  const MappedFile* file = nullptr;  // kNoInformation: nullptr when nothing is mapped there
  std::size_t by_frame_pointer = 0;  // steps for which there was nothing better
  // The process has used up its share: the stack ends where the next step would have been.
  bool too_slow = false;   // of steps
  bool too_large = false;  // of bytes: for the unwind tables of FILE
};

inline constexpr std::size_t kMostFrames = 4000;

class Unwinder {
 public:
  // BUDGET: of the steps that expressions and rows of the unwind tables take.
  Unwinder(
      const AddressSpaces& spaces, Objects& objects, const TrampolineFinder& trampolines,
      std::shared_ptr<base::RecordingBudget> budget = std::make_shared<base::RecordingBudget>())
      : spaces_{spaces}, objects_{objects}, trampolines_{trampolines}, budget_{std::move(budget)} {}

  // Appends the program counters, innermost first, to CHAIN. Those of callers are one less than
  // their return addresses, so that they are in the function that calls also where that call is
  // its last instruction; perf's own unwinding does the same.
  // REGISTERS_OF: if not null, those of each of them; their stack pointers are the bounds of the
  // frames.
  [[nodiscard]] Unwound unwind(ProcessNumber pid, Time time, Registers registers,
                               const StackDump& stack, std::vector<std::uint64_t>& chain,
                               std::vector<Registers>* registers_of = nullptr);

  // Whether at ADDRESS, one in a function, the caller's frame pointer and its return address are
  // where the frame pointer points to, so that frame pointers lead to the caller. nullopt: no
  // tables tell it.
  [[nodiscard]] std::optional<bool> keeps_frame(ProcessNumber pid, Time time,
                                                std::uint64_t address);

 private:
  struct Known {
    Rule::Kind kind = Rule::Kind::kNone;
    const Rule* rule = nullptr;
    std::optional<Trampoline> trampoline;
    const MappedFile* file = nullptr;
    Time from = 0;  // it holds for [from, until)
    Time until = 0;
    bool refused = false;  // the unwind tables of FILE were too much
  };
  // What one call may spend, and who pays.
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
