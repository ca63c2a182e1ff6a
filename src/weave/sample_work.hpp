// The state of one sample while it is rewritten.
#pragma once

#include "perfdata/sample.hpp"
#include "unwind/address_spaces.hpp"
#include "unwind/registers.hpp"
#include "unwind/unwinder.hpp"
#include "weave/merge.hpp"
#include "weave/python_stacks.hpp"
#include "weave/weave.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace pyinject::weave {

// Marks a stack of which perf or the kernel keeps no more.
inline constexpr std::string_view kCutCallchain = "[truncated: callchain]";

struct SampleWork {
  perfdata::Sample sample;
  std::vector<std::uint64_t> chain;             // the user part, innermost first
  std::vector<std::uint64_t> result;            // the complete new callchain
  std::vector<AddressKind> kinds;               // of CHAIN
  const Interpreter* interpreter = nullptr;     // of the sample's process
  unwind::StackDump stack;                      // CHAIN was unwound from it
  std::vector<unwind::Registers> registers;     // one per entry of CHAIN; empty: not unwound
  bool deferred = false;                        // CHAIN was recorded later
  bool lacks_user_part = false;                 // and was not found
  std::uint64_t* incomplete_counter = nullptr;  // counts the reason why CHAIN lacks its outer end
  std::optional<perfdata::StackKind> kind;      // nullopt: of a process that is not recorded
  bool in_greenlet = false;                     // CHAIN ends where the C stack of a greenlet does
  bool greenlet_switches = false;               // CHAIN may be that of another greenlet
  bool greenlet_copied = false;                 // its stack may be half of one and half of another

  // Call it before the next sample; keeps the memory.
  void clear_stack() {
    chain.clear();
    result.clear();
    registers.clear();
    deferred = false;
    lacks_user_part = false;
    incomplete_counter = nullptr;
    kind.reset();
    in_greenlet = false;
    greenlet_switches = false;
    greenlet_copied = false;
  }
};

// Whether ADDRESS lies in the file that has the evaluator of WORK's interpreter.
[[nodiscard]] bool is_of_interpreter(const unwind::AddressSpaces& spaces, const SampleWork& work,
                                     std::uint64_t address);
// Without what the callchain shows.
[[nodiscard]] StackQuery query_of(const unwind::AddressSpaces& spaces, const SampleWork& work);

}  // namespace pyinject::weave
