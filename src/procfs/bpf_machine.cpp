#include "procfs/bpf_machine.hpp"

#include <linux/bpf_common.h>
#include <linux/seccomp.h>

namespace pyinject::procfs {

namespace {

using Word = BpfMachine::Word;

Word operation(std::uint16_t code, std::uint32_t a, std::uint32_t b) {
  switch (BPF_OP(code)) {
    case BPF_ADD:
      return a + b;
    case BPF_SUB:
      return a - b;
    case BPF_MUL:
      return a * b;
    case BPF_DIV:
      return a / b;
    case BPF_AND:
      return a & b;
    case BPF_OR:
      return a | b;
    case BPF_XOR:
      return a ^ b;
    case BPF_LSH:
      return a << (b % 32);
    case BPF_RSH:
      return a >> (b % 32);
    default:
      return std::nullopt;
  }
}

std::optional<bool> condition(std::uint16_t code, std::uint32_t a, std::uint32_t b) {
  switch (BPF_OP(code)) {
    case BPF_JEQ:
      return a == b;
    case BPF_JGT:
      return a > b;
    case BPF_JGE:
      return a >= b;
    case BPF_JSET:
      return (a & b) != 0;
    default:
      return std::nullopt;
  }
}

// False for instructions that bpf_check_classic (net/core/filter.c) and seccomp_check_filter
// (kernel/seccomp.c) reject, which no installed filter contains.
bool is_allowed(const sock_filter& instruction) {
  switch (instruction.code) {
    case BPF_ALU | BPF_DIV | BPF_K:
      return instruction.k != 0;
    case BPF_ALU | BPF_LSH | BPF_K:
    case BPF_ALU | BPF_RSH | BPF_K:
      return instruction.k < 32;
    case BPF_LD | BPF_W | BPF_ABS:
    case BPF_LD | BPF_W | BPF_LEN:
    case BPF_LDX | BPF_W | BPF_LEN:
    case BPF_LD | BPF_IMM:
    case BPF_LDX | BPF_IMM:
    case BPF_LD | BPF_MEM:
    case BPF_LDX | BPF_MEM:
    case BPF_ST:
    case BPF_STX:
    case BPF_MISC | BPF_TAX:
    case BPF_MISC | BPF_TXA:
    case BPF_RET | BPF_K:
    case BPF_RET | BPF_A:
    case BPF_ALU | BPF_NEG:
    case BPF_JMP | BPF_JA:
      return true;
    default:
      break;
  }
  switch (instruction.code & ~std::uint32_t{BPF_X}) {
    case BPF_ALU | BPF_ADD:
    case BPF_ALU | BPF_SUB:
    case BPF_ALU | BPF_MUL:
    case BPF_ALU | BPF_DIV:
    case BPF_ALU | BPF_AND:
    case BPF_ALU | BPF_OR:
    case BPF_ALU | BPF_XOR:
    case BPF_ALU | BPF_LSH:
    case BPF_ALU | BPF_RSH:
    case BPF_JMP | BPF_JEQ:
    case BPF_JMP | BPF_JGT:
    case BPF_JMP | BPF_JGE:
    case BPF_JMP | BPF_JSET:
      return true;
    default:
      return false;
  }
}

}  // namespace

BpfMachine::Step BpfMachine::execute(const sock_filter& instruction) {
  skip_ = 0;
  if (!is_allowed(instruction)) {
    return Step::kUnknown;
  }
  switch (BPF_CLASS(instruction.code)) {
    case BPF_LD:
      return load(instruction, a_);
    case BPF_LDX:
      return load(instruction, x_);
    case BPF_ST:
      return store(instruction, a_);
    case BPF_STX:
      return store(instruction, x_);
    case BPF_ALU:
      return calculate(instruction);
    case BPF_JMP:
      return jump(instruction);
    case BPF_RET:
      return leave(instruction);
    default:
      return move(instruction);
  }
}

// The modes that seccomp_check_filter (kernel/seccomp.c) accepts.
BpfMachine::Step BpfMachine::load(const sock_filter& instruction, Word& to) {
  const bool into_a = BPF_CLASS(instruction.code) == BPF_LD;
  if (BPF_SIZE(instruction.code) != BPF_W) {
    return Step::kUnknown;
  }
  switch (BPF_MODE(instruction.code)) {
    case BPF_IMM:
      to = instruction.k;
      return Step::kNext;
    case BPF_LEN:
      to = static_cast<std::uint32_t>(sizeof(seccomp_data));
      return Step::kNext;
    case BPF_MEM:
      if (instruction.k >= memory_.size()) {
        return Step::kUnknown;
      }
      to = memory_.at(instruction.k);
      return Step::kNext;
    case BPF_ABS:
      if (!into_a || instruction.k % 4 != 0 || instruction.k >= sizeof(seccomp_data)) {
        return Step::kUnknown;
      }
      to = data_at(instruction.k);
      return Step::kNext;
    default:
      return Step::kUnknown;
  }
}

BpfMachine::Step BpfMachine::store(const sock_filter& instruction, Word from) {
  if (instruction.k >= memory_.size()) {
    return Step::kUnknown;
  }
  memory_.at(instruction.k) = from;
  return Step::kNext;
}

BpfMachine::Step BpfMachine::calculate(const sock_filter& instruction) {
  if (BPF_OP(instruction.code) == BPF_NEG) {
    a_ = a_ ? Word{0U - *a_} : std::nullopt;
    return Step::kNext;
  }
  const Word operand = BPF_SRC(instruction.code) == BPF_X ? x_ : Word{instruction.k};
  if (BPF_OP(instruction.code) == BPF_DIV && operand == 0U) {
    value_ = 0;  // a program that divides by zero returns 0 (bpf_convert_filter)
    return Step::kReturn;
  }
  if (a_ && operand) {
    a_ = operation(instruction.code, *a_, *operand);
    return a_ ? Step::kNext : Step::kUnknown;
  }
  a_ = std::nullopt;
  return BPF_OP(instruction.code) == BPF_DIV ? Step::kUnknown : Step::kNext;
}

BpfMachine::Step BpfMachine::jump(const sock_filter& instruction) {
  if (BPF_OP(instruction.code) == BPF_JA) {
    skip_ = instruction.k;
    return Step::kNext;
  }
  const Word operand = BPF_SRC(instruction.code) == BPF_X ? x_ : Word{instruction.k};
  const auto taken = a_ && operand ? condition(instruction.code, *a_, *operand) : std::nullopt;
  if (taken) {
    skip_ = *taken ? instruction.jt : instruction.jf;
    return Step::kNext;
  }
  if (instruction.jt == instruction.jf) {
    skip_ = instruction.jt;
    return Step::kNext;
  }
  return Step::kUnknown;
}

BpfMachine::Step BpfMachine::leave(const sock_filter& instruction) {
  value_ = BPF_RVAL(instruction.code) == BPF_A ? a_ : Word{instruction.k};
  return value_ ? Step::kReturn : Step::kUnknown;
}

BpfMachine::Step BpfMachine::move(const sock_filter& instruction) {
  switch (BPF_MISCOP(instruction.code)) {
    case BPF_TAX:
      x_ = a_;
      return Step::kNext;
    case BPF_TXA:
      a_ = x_;
      return Step::kNext;
    default:
      return Step::kUnknown;
  }
}

Word BpfMachine::data_at(std::uint32_t offset) const {
  constexpr std::uint32_t kArgs = 16;
  if (offset == 0) {
    return call_.number;
  }
  if (offset == 4) {
    return call_.arch;
  }
  if (offset < kArgs) {
    return std::nullopt;  // instruction pointer
  }
  const auto argument = call_.args.at((offset - kArgs) / 8);
  if (!argument) {
    return std::nullopt;
  }
  return static_cast<std::uint32_t>(offset % 8 == 0 ? *argument : *argument >> 32U);
}

}  // namespace pyinject::procfs
