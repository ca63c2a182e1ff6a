#include "elf/unwind_expression.hpp"

#include "base/byte_cursor.hpp"
#include "elf/unwind_operations.hpp"

#include <vector>

namespace pyinject::elf {

namespace {

constexpr int kMostSteps = 500;
constexpr std::uint64_t kStepsToBegin = 10;
constexpr std::size_t kMostValues = 64;

std::uint64_t extended(std::int64_t value) { return static_cast<std::uint64_t>(value); }

std::optional<std::uint64_t> constant(std::uint8_t operation, base::ByteCursor& cursor) {
  switch (operation) {
    case kUnsigned1:
      return cursor.number<std::uint8_t>();
    case kSigned1:
      return extended(cursor.number<std::int8_t>());
    case kUnsigned2:
      return cursor.number<std::uint16_t>();
    case kSigned2:
      return extended(cursor.number<std::int16_t>());
    case kUnsigned4:
      return cursor.number<std::uint32_t>();
    case kSigned4:
      return extended(cursor.number<std::int32_t>());
    case kAddress:
    case kUnsigned8:
    case kSigned8:
      return cursor.number<std::uint64_t>();
    case kUnsignedLeb:
      return cursor.unsigned_leb();
    case kSignedLeb:
      return cursor.signed_leb();
    default:
      if (operation >= kLiteral0 && operation <= kLiteral31) {
        return operation - kLiteral0;
      }
      return std::nullopt;
  }
}

std::optional<std::uint64_t> of_two(std::uint8_t operation, std::uint64_t a, std::uint64_t b) {
  const auto as_signed = [](std::uint64_t value) { return static_cast<std::int64_t>(value); };
  switch (operation) {
    case kAnd:
      return a & b;
    case kMinus:
      return a - b;
    case kMultiply:
      return a * b;
    case kOr:
      return a | b;
    case kPlus:
      return a + b;
    case kShiftLeft:
      return b < 64 ? a << b : 0;
    case kShiftRight:
      return b < 64 ? a >> b : 0;
    case kExclusiveOr:
      return a ^ b;
    case kEqual:
      return a == b ? 1 : 0;
    case kNotEqual:
      return a != b ? 1 : 0;
    case kGreaterOrEqual:
      return as_signed(a) >= as_signed(b) ? 1 : 0;
    case kGreater:
      return as_signed(a) > as_signed(b) ? 1 : 0;
    case kLessOrEqual:
      return as_signed(a) <= as_signed(b) ? 1 : 0;
    case kLess:
      return as_signed(a) < as_signed(b) ? 1 : 0;
    default:
      return std::nullopt;
  }
}

class Evaluation {
 public:
  Evaluation(Expression expression, const ExpressionContext& context, base::Allowance& steps)
      : cursor_{expression}, context_{context}, steps_{steps} {}

  std::optional<std::uint64_t> run(std::optional<std::uint64_t> first) {
    if (!steps_.take(kStepsToBegin)) {
      return std::nullopt;
    }
    if (first) {
      values_.push_back(*first);
    }
    for (int step = 0; !cursor_.at_end(); ++step) {
      if (step == kMostSteps || values_.size() > kMostValues || !steps_.take(1) || !one() ||
          cursor_.failed()) {
        return std::nullopt;
      }
    }
    return pop();
  }

 private:
  bool one() {
    const auto operation = cursor_.number<std::uint8_t>();
    if (operation == kNoOperation) {
      return true;
    }
    if (const auto value = constant(operation, cursor_)) {
      return push(value);
    }
    if (operation == kRegisterLeb || (operation >= kRegister0 && operation <= kRegister31)) {
      const std::uint64_t number = operation == kRegisterLeb
                                       ? cursor_.unsigned_leb()
                                       : std::uint64_t{operation} - kRegister0;
      const auto base = context_.register_value(number);
      const auto offset = cursor_.signed_leb();
      return base && push(*base + offset);
    }
    return on_stack(operation);
  }

  bool on_stack(std::uint8_t operation) {
    const auto top = pop();
    if (!top) {
      return false;
    }
    switch (operation) {
      case kDereference:
        return push(context_.word_at(*top));
      case kDuplicate:
        return push(top) && push(top);
      case kDrop:
        return true;
      case kNegate:
        return push(0 - *top);
      case kNot:
        return push(~*top);
      case kPlusConstant:
        return push(*top + cursor_.unsigned_leb());
      default:
        break;
    }
    const auto below = pop();
    if (!below) {
      return false;
    }
    if (operation == kOver) {
      return push(below) && push(top) && push(below);
    }
    if (operation == kSwap) {
      return push(top) && push(below);
    }
    return push(of_two(operation, *below, *top));
  }

  bool push(std::optional<std::uint64_t> value) {
    if (value) {
      values_.push_back(*value);
    }
    return value.has_value();
  }
  std::optional<std::uint64_t> pop() {
    if (values_.empty()) {
      return std::nullopt;
    }
    const auto value = values_.back();
    values_.pop_back();
    return value;
  }

  base::ByteCursor cursor_;
  const ExpressionContext& context_;
  base::Allowance& steps_;
  std::vector<std::uint64_t> values_;
};

}  // namespace

std::optional<std::uint64_t> evaluate(Expression expression, const ExpressionContext& context,
                                      base::Allowance& steps, std::optional<std::uint64_t> first) {
  return Evaluation{expression, context, steps}.run(first);
}

}  // namespace pyinject::elf
