// Seccomp filters, which are programs of the target. The verdict on one must match the kernel's
// behavior.
#include "fuzz/fuzz.hpp"
#include "procfs/seccomp_filter.hpp"

#include <array>
#include <optional>
#include <random>

#include <linux/bpf_common.h>
#include <linux/seccomp.h>

namespace pyinject::fuzz {
namespace {

using procfs::SeccompProgram;
using procfs::SystemCall;

// The kernel's virtual machine for one system call: seccomp_check_filter() for the permitted
// instructions, ___bpf_prog_run() for their effect. nullopt: the kernel would reject the program.
class Kernel {
 public:
  Kernel(const SystemCall& call, std::uint64_t instruction_pointer, std::mt19937& random)
      : data_{.nr = static_cast<int>(call.number),
              .arch = call.arch,
              .instruction_pointer = instruction_pointer,
              .args = {}} {
    for (std::size_t i = 0; i < call.args.size(); ++i) {
      // Small values and whole words, so that comparisons have both outcomes.
      data_.args[i] = call.args.at(i).value_or((random() % 2 == 0 ? random() % 8 : random()) |
                                               std::uint64_t{random() % 2} << 32U);
    }
    for (auto& word : memory_) {
      word = static_cast<std::uint32_t>(random());
    }
  }

  std::optional<std::uint32_t> run(std::span<const sock_filter> program) {
    std::uint64_t at = 0;
    while (at < program.size()) {
      const auto& instruction = program[at];
      ++at;
      if (BPF_CLASS(instruction.code) == BPF_RET) {
        switch (instruction.code) {
          case BPF_RET | BPF_K:
            return instruction.k;
          case BPF_RET | BPF_A:
            return a_;
          default:
            return std::nullopt;
        }
      }
      if (instruction.code == (BPF_ALU | BPF_DIV | BPF_X) && x_ == 0) {
        return 0;
      }
      if (BPF_CLASS(instruction.code) == BPF_JMP ? !jump(instruction, at) : !step(instruction)) {
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

 private:
  bool jump(const sock_filter& instruction, std::uint64_t& at) const {
    const auto b = BPF_SRC(instruction.code) == BPF_X ? x_ : instruction.k;
    bool yes = false;
    switch (instruction.code) {
      case BPF_JMP | BPF_JA:
        at += instruction.k;
        return true;
      case BPF_JMP | BPF_JEQ | BPF_K:
      case BPF_JMP | BPF_JEQ | BPF_X:
        yes = a_ == b;
        break;
      case BPF_JMP | BPF_JGT | BPF_K:
      case BPF_JMP | BPF_JGT | BPF_X:
        yes = a_ > b;
        break;
      case BPF_JMP | BPF_JGE | BPF_K:
      case BPF_JMP | BPF_JGE | BPF_X:
        yes = a_ >= b;
        break;
      case BPF_JMP | BPF_JSET | BPF_K:
      case BPF_JMP | BPF_JSET | BPF_X:
        yes = (a_ & b) != 0;
        break;
      default:
        return false;
    }
    at += yes ? instruction.jt : instruction.jf;
    return true;
  }

  bool step(const sock_filter& instruction) {
    const auto k = instruction.k;
    switch (instruction.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        if (k % 4 != 0 || k >= sizeof data_) {
          return false;
        }
        std::memcpy(&a_, reinterpret_cast<const char*>(&data_) + k, sizeof a_);
        return true;
      case BPF_LD | BPF_W | BPF_LEN:
        a_ = sizeof data_;
        return true;
      case BPF_LDX | BPF_W | BPF_LEN:
        x_ = sizeof data_;
        return true;
      case BPF_LD | BPF_IMM:
        a_ = k;
        return true;
      case BPF_LDX | BPF_IMM:
        x_ = k;
        return true;
      case BPF_MISC | BPF_TAX:
        x_ = a_;
        return true;
      case BPF_MISC | BPF_TXA:
        a_ = x_;
        return true;
      case BPF_LD | BPF_MEM:
      case BPF_LDX | BPF_MEM:
      case BPF_ST:
      case BPF_STX:
        return move(instruction);
      default:
        return calculate(instruction);
    }
  }

  bool move(const sock_filter& instruction) {
    if (instruction.k >= memory_.size()) {
      return false;
    }
    auto& word = memory_.at(instruction.k);
    switch (BPF_CLASS(instruction.code)) {
      case BPF_LD:
        a_ = word;
        break;
      case BPF_LDX:
        x_ = word;
        break;
      case BPF_ST:
        word = a_;
        break;
      default:
        word = x_;
    }
    return true;
  }

  bool calculate(const sock_filter& instruction) {
    const auto b = BPF_SRC(instruction.code) == BPF_X ? x_ : instruction.k;
    const bool constant = BPF_SRC(instruction.code) == BPF_K;
    switch (instruction.code & ~std::uint32_t{BPF_X}) {
      case BPF_ALU | BPF_ADD:
        a_ += b;
        return true;
      case BPF_ALU | BPF_SUB:
        a_ -= b;
        return true;
      case BPF_ALU | BPF_MUL:
        a_ *= b;
        return true;
      case BPF_ALU | BPF_DIV:
        if (b == 0) {
          return false;  // division by a constant 0: bpf_check_classic() rejects it
        }
        a_ /= b;
        return true;
      case BPF_ALU | BPF_AND:
        a_ &= b;
        return true;
      case BPF_ALU | BPF_OR:
        a_ |= b;
        return true;
      case BPF_ALU | BPF_XOR:
        a_ ^= b;
        return true;
      case BPF_ALU | BPF_LSH:
        a_ <<= b % 32;
        return !constant || b < 32;
      case BPF_ALU | BPF_RSH:
        a_ >>= b % 32;
        return !constant || b < 32;
      case BPF_ALU | BPF_NEG:
        a_ = 0 - a_;
        return constant;
      default:
        return false;
    }
  }

  seccomp_data data_;
  std::uint32_t a_ = 0;
  std::uint32_t x_ = 0;
  std::array<std::uint32_t, BPF_MEMWORDS> memory_{};
};

SeccompProgram take_program(Input& input) {
  const auto bytes = input.take_bytes(sizeof(sock_filter) * input.take<std::uint8_t>());
  SeccompProgram program(bytes.size() / sizeof(sock_filter));
  if (!program.empty()) {
    std::memcpy(program.data(), bytes.data(), program.size() * sizeof(sock_filter));
  }
  return program;
}

}  // namespace

void run(Input input) {
  const auto known = input.take<std::uint8_t>();
  SystemCall call{.number = input.take<std::uint16_t>() % 512U, .args = {}};
  for (std::size_t i = 0; i < call.args.size(); ++i) {
    if ((known >> i & 1U) != 0) {
      call.args.at(i) = input.take<std::uint16_t>();
    }
  }
  const auto first = take_program(input);
  const auto second = take_program(input);
  const auto told = procfs::evaluate(first, call);
  std::mt19937 random{known};  // NOLINT(cert-msc51-cpp): an input always does the same
  for (int i = 0; told && i < 8; ++i) {
    const auto real = Kernel{call, random(), random}.run(first);
    require(real.has_value(), "nothing is told of a program that the kernel refuses");
    require(real == told, "what is told holds for every value of what is not known");
  }
  const std::array both{first, second};
  const auto worst = procfs::worst_of(both, call);
  for (const auto& program : both) {
    const auto one = procfs::evaluate(program, call);
    require(!worst || !one ||
                static_cast<std::int32_t>(*worst & SECCOMP_RET_ACTION_FULL) <=
                    static_cast<std::int32_t>(*one & SECCOMP_RET_ACTION_FULL),
            "the strictest filter decides");
  }
  for (const auto& problem : procfs::judge(both)) {
    require(problem.outcome != procfs::SeccompOutcome::kAllowed, "what is allowed is no problem");
  }
}

}  // namespace pyinject::fuzz
