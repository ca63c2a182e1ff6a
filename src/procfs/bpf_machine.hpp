// The classic BPF machine of seccomp, with values that may be unknown.
#pragma once

#include "procfs/seccomp_filter.hpp"

#include <array>
#include <cstdint>
#include <optional>

namespace pyinject::procfs {

class BpfMachine {
 public:
  using Word = std::optional<std::uint32_t>;

  explicit BpfMachine(const SystemCall& call) : call_{call} {}

  enum class Step { kNext, kReturn, kUnknown };
  // Executes one instruction. kNext: skip() more instructions must be skipped. kReturn: see
  // value().
  Step execute(const sock_filter& instruction);

  [[nodiscard]] std::uint32_t skip() const { return skip_; }
  [[nodiscard]] Word value() const { return value_; }

 private:
  Step load(const sock_filter& instruction, Word& to);
  Step store(const sock_filter& instruction, Word from);
  Step calculate(const sock_filter& instruction);
  Step jump(const sock_filter& instruction);
  Step leave(const sock_filter& instruction);
  Step move(const sock_filter& instruction);
  [[nodiscard]] Word data_at(std::uint32_t offset) const;

  const SystemCall& call_;
  Word a_ = 0;
  Word x_ = 0;
  std::array<Word, BPF_MEMWORDS> memory_{};
  std::uint32_t skip_ = 0;
  Word value_;
};

}  // namespace pyinject::procfs
