// DWARF expressions as unwind tables use them: DWARF 4 sections 2.5 and 6.4.2.
#pragma once

#include "base/budget.hpp"
#include "elf/call_frame_info.hpp"

#include <cstdint>
#include <optional>

namespace pyinject::elf {

// What an expression may ask for.
class ExpressionContext {
 public:
  virtual ~ExpressionContext() = default;
  ExpressionContext() = default;
  ExpressionContext(const ExpressionContext&) = delete;
  ExpressionContext& operator=(const ExpressionContext&) = delete;

  // NUMBER: DWARF's. nullopt: not known.
  [[nodiscard]] virtual std::optional<std::uint64_t> register_value(std::uint64_t number) const = 0;
  // 8 bytes of the stack.
  [[nodiscard]] virtual std::optional<std::uint64_t> word_at(std::uint64_t address) const = 0;
};

// FIRST: what lies on the expression's stack at its beginning, if anything. nullopt: something is
// not known, or the expression makes no sense or takes more than STEPS or some hundred of them.
[[nodiscard]] std::optional<std::uint64_t> evaluate(Expression expression,
                                                    const ExpressionContext& context,
                                                    base::Allowance& steps,
                                                    std::optional<std::uint64_t> first = {});

}  // namespace pyinject::elf
