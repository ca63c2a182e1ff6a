#include "elf/unwind_expression.hpp"
#include "unwind/step.hpp"

namespace pyinject::unwind {

namespace {

using Place = elf::SavedRegister::Place;

constexpr std::uint64_t kWord = 8;

Step missing(const StackDump& stack, std::uint64_t address) {
  return address >= stack.begin ? Step::kOutside : Step::kBroken;
}

// The caller's stack pointer must be higher; otherwise unwinding might loop.
bool grows(const Registers& now, std::uint64_t cfa) { return cfa > now.sp(); }

// At the return instruction, gcc's tables still give the place where %rbp was saved
// (-fno-omit-frame-pointer), which is below the stack pointer by then: it has been popped into its
// register.
bool is_popped(const Registers& registers, std::uint64_t place) { return place < registers.sp(); }

// The context in which expressions are evaluated.
class Context : public elf::ExpressionContext {
 public:
  Context(const Registers& registers, const StackDump& stack)
      : registers_{registers}, stack_{stack} {}
  [[nodiscard]] std::optional<std::uint64_t> register_value(std::uint64_t number) const override {
    return registers_.get(number);
  }
  [[nodiscard]] std::optional<std::uint64_t> word_at(std::uint64_t address) const override {
    const auto word = stack_.word_at(address);
    if (!word) {
      missing_ = address;
    }
    return word;
  }
  [[nodiscard]] Step why() const { return missing_ ? missing(stack_, *missing_) : Step::kBroken; }

 private:
  const Registers& registers_;
  const StackDump& stack_;
  mutable std::optional<std::uint64_t> missing_;
};

// The value of SAVED, or why it is unavailable.
std::optional<std::uint64_t> value_of(const elf::SavedRegister& saved, std::size_t number,
                                      std::uint64_t cfa, const Registers& registers,
                                      const Context& context, base::Allowance& steps) {
  const auto at_cfa = cfa + static_cast<std::uint64_t>(saved.offset);
  switch (saved.place) {
    case Place::kUnchanged:
      return registers.get(number);
    case Place::kLost:
      return std::nullopt;
    case Place::kAtCfa:
      return is_popped(registers, at_cfa) && number != elf::kReturnAddress
                 ? registers.get(number)
                 : context.word_at(at_cfa);
    case Place::kCfaValue:
      return at_cfa;
    case Place::kInRegister:
      return registers.get(static_cast<std::uint64_t>(saved.offset));
    case Place::kAtExpression: {
      const auto address = elf::evaluate(saved.expression, context, steps, cfa);
      return address ? context.word_at(*address) : std::nullopt;
    }
    case Place::kExpression:
      return elf::evaluate(saved.expression, context, steps, cfa);
  }
  return std::nullopt;
}

}  // namespace

Step by_rule(const Rule& rule, const StackDump& stack, Registers& registers) {
  if (!registers.knows(rule.cfa_register)) {
    return Step::kBroken;
  }
  const auto cfa = registers.values[rule.cfa_register] +
                   static_cast<std::uint64_t>(std::int64_t{rule.cfa_offset});
  if (!grows(registers, cfa)) {
    return Step::kBroken;
  }
  const auto at = [cfa](std::int32_t offset) {
    return cfa + static_cast<std::uint64_t>(std::int64_t{offset});
  };
  const auto pc = stack.word_at(at(rule.return_address));
  if (!pc) {
    return missing(stack, at(rule.return_address));
  }
  Registers caller = registers;
  const auto restore = [&](std::size_t number, std::int32_t place) {
    if (place == Rule::kUnchanged || is_popped(registers, at(place))) {
      return;
    }
    if (const auto value = stack.word_at(at(place))) {
      caller.set(number, *value);
    } else {
      caller.forget(number);
    }
  };
  restore(elf::kFramePointer, rule.frame_pointer);
  for (std::size_t i = 0; i < kOtherRegisters.size(); ++i) {
    restore(kOtherRegisters[i], rule.others[i]);
  }
  caller.known &= preserved_by_calls();
  caller.set(elf::kStackPointer, cfa);
  caller.set(elf::kReturnAddress, *pc);
  registers = caller;
  return Step::kDone;
}

Step by_row(const elf::UnwindRow& row, const StackDump& stack, base::Allowance& steps,
            Registers& registers) {
  const Context context{registers, stack};
  std::optional<std::uint64_t> cfa;
  if (row.cfa_register) {
    cfa = registers.get(*row.cfa_register);
    if (cfa) {
      *cfa += static_cast<std::uint64_t>(row.cfa_offset);
    }
  } else {
    cfa = elf::evaluate(row.cfa_expression, context, steps);
  }
  if (!cfa) {
    return context.why();
  }
  Registers caller;
  for (std::size_t i = 0; i < kRegisters; ++i) {
    if (const auto value = value_of(row.registers[i], i, *cfa, registers, context, steps)) {
      caller.set(i, *value);
    }
  }
  if (steps.exhausted()) {  // a register may be missing only because of the limit
    return Step::kBroken;
  }
  if (!row.signal_frame) {
    caller.known &= preserved_by_calls() | 1U << elf::kReturnAddress;
  }
  if (!caller.knows(elf::kReturnAddress)) {
    return context.why();
  }
  if (row.registers[elf::kStackPointer].place == Place::kUnchanged) {
    caller.set(elf::kStackPointer, *cfa);
  }
  // A signal may arrive on an alternate stack, which can be higher. vfork(2) of glibc has popped
  // its return address; no callee-saved register holds a copy.
  const bool popped = row.registers[elf::kReturnAddress].place == Place::kInRegister &&
                      caller.sp() == registers.sp();
  if (!caller.knows(elf::kStackPointer) ||
      (!row.signal_frame && !popped && !grows(registers, caller.sp()))) {
    return Step::kBroken;
  }
  registers = caller;
  return Step::kDone;
}

// Objects/asm_trampoline.S of CPython: 3.12 and 3.13 move the stack pointer by 8 bytes, 3.14 and
// later push %rbp; some builds start with endbr64. In all of them the CFA is 16 bytes above the
// stack pointer, except in the prologue and at the return instruction.
Step by_trampoline(const Trampoline& trampoline, const StackDump& stack, Registers& registers) {
  constexpr std::uint64_t kPlain = 11;  // sub $8,%rsp; call *%rcx; add $8,%rsp; ret
  constexpr std::uint64_t kEndbr = 4;
  constexpr std::uint64_t kFrame = 8;  // push %rbp; mov %rsp,%rbp; call *%rcx; pop %rbp; ret
  const bool frame = trampoline.size == kFrame + kEndbr || trampoline.size == kFrame;
  const bool plain = trampoline.size == kPlain || trampoline.size == kPlain + kEndbr;
  if (!frame && !plain) {
    return Step::kBroken;
  }
  const auto at = registers.pc() - trampoline.begin;
  const auto pushed = trampoline.size - (frame ? kFrame : kPlain) + (frame ? 1 : 4);
  const bool entered = at >= pushed && at < trampoline.size - 1;
  const auto cfa = registers.sp() + (entered ? 2 : 1) * kWord;
  const auto pc = stack.word_at(cfa - kWord);
  if (!pc) {
    return missing(stack, cfa - kWord);
  }
  if (frame && entered) {
    const auto saved = stack.word_at(cfa - 2 * kWord);
    if (!saved) {
      return missing(stack, cfa - 2 * kWord);
    }
    registers.set(elf::kFramePointer, *saved);
  }
  registers.known &= preserved_by_calls();
  registers.set(elf::kStackPointer, cfa);
  registers.set(elf::kReturnAddress, *pc);
  return Step::kDone;
}

Step by_frame_pointer(const StackDump& stack, Registers& registers) {
  if (!registers.knows(elf::kFramePointer) || registers.fp() % kWord != 0 ||
      registers.fp() < registers.sp()) {
    return Step::kNotThere;
  }
  const auto saved = stack.word_at(registers.fp());
  const auto pc = stack.word_at(registers.fp() + kWord);
  if (!saved || !pc) {
    return Step::kNotThere;
  }
  const auto cfa = registers.fp() + 2 * kWord;
  registers = {};
  registers.set(elf::kFramePointer, *saved);
  registers.set(elf::kStackPointer, cfa);
  registers.set(elf::kReturnAddress, *pc);
  return Step::kDone;
}

}  // namespace pyinject::unwind
