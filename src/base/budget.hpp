// Limits on the cost of untrusted input: memory, steps, addresses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <unordered_map>

namespace pyinject::base {

// The limit of one piece of work. A refusal is final: the work must be given up.
class Allowance {
 public:
  explicit Allowance(std::uint64_t most = std::numeric_limits<std::uint64_t>::max())
      : most_{most}, left_{most} {}

  // False: AMOUNT exceeds what is left.
  [[nodiscard]] bool take(std::uint64_t amount) {
    exhausted_ = exhausted_ || amount > left_;
    left_ -= exhausted_ ? 0 : amount;
    return !exhausted_;
  }
  [[nodiscard]] std::uint64_t left() const { return exhausted_ ? 0 : left_; }
  [[nodiscard]] std::uint64_t taken() const { return most_ - left_; }
  [[nodiscard]] bool exhausted() const { return exhausted_; }

 private:
  std::uint64_t most_;
  std::uint64_t left_;
  bool exhausted_ = false;
};

// A total shared by spenders that do not trust each other. Each may hold up to a quarter of what it
// leaves free: the first spender a fifth of the total, the next one a fifth of the rest. So ten
// spenders that take all they can leave a tenth, of which the next one gets a fifth. Not
// thread-safe.
class Budget {
 public:
  using Spender = std::uint32_t;  // the pid of a process, or of the first one of a family

  explicit Budget(std::uint64_t total) : total_{total} {}

  // The amount that SPENDER may take now.
  [[nodiscard]] std::uint64_t left(Spender spender) const {
    const auto own = held_by(spender);
    const auto free = total_ - std::min(total_, spent_);
    return free > kPart * own ? (free - kPart * own) / (kPart + 1) : 0;
  }
  // False: AMOUNT exceeds left(); nothing is charged.
  [[nodiscard]] bool take(Spender spender, std::uint64_t amount) {
    const bool enough = amount <= left(spender);
    charge(spender, enough ? amount : 0);
    return enough;
  }
  // For amounts already used.
  void charge(Spender spender, std::uint64_t amount) {
    held_[spender] += amount;
    spent_ += amount;
  }
  void give_back(Spender spender, std::uint64_t amount) {
    auto& held = held_[spender];
    amount = std::min(amount, held);
    held -= amount;
    spent_ -= amount;
  }
  [[nodiscard]] std::uint64_t spent() const { return spent_; }
  [[nodiscard]] std::uint64_t held_by(Spender spender) const {
    const auto found = held_.find(spender);
    return found == held_.end() ? 0 : found->second;
  }

 private:
  static constexpr std::uint64_t kPart = 4;

  std::uint64_t total_;
  std::uint64_t spent_ = 0;
  std::unordered_map<Spender, std::uint64_t> held_;
};

// Limits for everything that is read about the processes of one recording.
struct RecordingBudget {
  static constexpr std::uint64_t kBytes = std::uint64_t{384} << 20U;
  static constexpr std::uint64_t kSteps = 250'000'000;  // some nanoseconds each

  Budget bytes{kBytes};
  Budget steps{kSteps};
};

}  // namespace pyinject::base
