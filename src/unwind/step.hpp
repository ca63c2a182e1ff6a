// One step from a function to its caller.
#pragma once

#include "unwind/unwinder.hpp"

namespace pyinject::unwind {

enum class Step {
  kDone,
  kOutside,   // a word that is needed lies above the dump
  kBroken,    // a register is not known, or the stack would shrink
  kNotThere,  // by_frame_pointer: the frame pointer points at no frame
};

// Each changes REGISTERS to the caller's, only when it is done.
[[nodiscard]] Step by_rule(const Rule& rule, const StackDump& stack, Registers& registers);
// STEPS: what its expressions take; when they are exhausted the stack is broken.
[[nodiscard]] Step by_row(const elf::UnwindRow& row, const StackDump& stack, base::Allowance& steps,
                          Registers& registers);
[[nodiscard]] Step by_trampoline(const Trampoline& trampoline, const StackDump& stack,
                                 Registers& registers);
// Of a function that keeps %rbp as its frame pointer; nothing proves that it does.
[[nodiscard]] Step by_frame_pointer(const StackDump& stack, Registers& registers);

}  // namespace pyinject::unwind
