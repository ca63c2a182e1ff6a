// DWARF expressions in unwind tables: DWARF 4 sections 2.5 and 6.4.2.
#pragma once

#include "base/budget.hpp"
#include "elf/call_frame_info.hpp"

#include <cstdint>
#include <optional>

namespace pyinject::elf {

// The inputs of an expression.
class ExpressionContext {
 public:
  virtual ~ExpressionContext() = default;
  ExpressionContext() = default;
  ExpressionContext(const ExpressionContext&) = delete;
  ExpressionContext& operator=(const ExpressionContext&) = delete;

  // NUMBER: DWARF's. nullopt: unknown.
  [[nodiscard]] virtual std::optional<std::uint64_t> register_value(std::uint64_t number) const = 0;
  // 8 bytes of the stack.
  [[nodiscard]] virtual std::optional<std::uint64_t> word_at(std::uint64_t address) const = 0;
};

// FIRST: initial contents of the expression's stack, if any. nullopt: an input is unknown, the
// expression is invalid, or it takes more than STEPS or than a fixed limit of some hundred steps.
[[nodiscard]] std::optional<std::uint64_t> evaluate(Expression expression,
                                                    const ExpressionContext& context,
                                                    base::Allowance& steps,
                                                    std::optional<std::uint64_t> first = {});

}  // namespace pyinject::elf
