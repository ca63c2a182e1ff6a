// One step from a function to its caller.
#pragma once

#include "unwind/unwinder.hpp"

namespace pyinject::unwind {

enum class Step {
  kDone,
  kOutside,   // a required word is above the dump
  kBroken,    // a register is unknown, or the stack would shrink
  kNotThere,  // by_frame_pointer: the frame pointer does not point to a frame
};

// Each function replaces REGISTERS by the caller's if it returns kDone, and changes nothing
// otherwise.
[[nodiscard]] Step by_rule(const Rule& rule, const StackDump& stack, Registers& registers);
// STEPS pays for the row's expressions; kBroken if exhausted.
[[nodiscard]] Step by_row(const elf::UnwindRow& row, const StackDump& stack, base::Allowance& steps,
                          Registers& registers);
[[nodiscard]] Step by_trampoline(const Trampoline& trampoline, const StackDump& stack,
                                 Registers& registers);
// For a function that keeps %rbp as its frame pointer, without proof that it does.
[[nodiscard]] Step by_frame_pointer(const StackDump& stack, Registers& registers);

}  // namespace pyinject::unwind
