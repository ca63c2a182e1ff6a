// From the registers and the copied stack of one sample to its callchain.
#pragma once

#include "pyinject/unwind/address_spaces.hpp"
#include "pyinject/unwind/objects.hpp"
#include "pyinject/unwind/registers.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
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
};

inline constexpr std::size_t kMostFrames = 4000;

class Unwinder {
 public:
  Unwinder(const AddressSpaces& spaces, Objects& objects, const TrampolineFinder& trampolines)
      : spaces_{spaces}, objects_{objects}, trampolines_{trampolines} {}

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
  };
  [[nodiscard]] Known look_up(ProcessNumber pid, Time time, std::uint64_t address);

  const AddressSpaces& spaces_;
  Objects& objects_;
  const TrampolineFinder& trampolines_;
  std::unordered_map<ProcessNumber, std::unordered_map<std::uint64_t, Known>> known_;
};

}  // namespace pyinject::unwind
