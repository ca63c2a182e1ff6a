#include "elf/unwind_expression.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

namespace pyinject::elf {
namespace {

// Register N contains 100 + N, from 16 on they are unknown; memory at A contains 2 A.
class MadeContext : public ExpressionContext {
 public:
  [[nodiscard]] std::optional<std::uint64_t> register_value(std::uint64_t number) const override {
    return number < 16 ? std::optional{100 + number} : std::nullopt;
  }
  [[nodiscard]] std::optional<std::uint64_t> word_at(std::uint64_t address) const override {
    return address < 0x1000 ? std::optional{2 * address} : std::nullopt;
  }
};

std::optional<std::uint64_t> value_of(std::initializer_list<unsigned> operations,
                                      std::optional<std::uint64_t> first = {}) {
  std::vector<std::byte> bytes;
  for (const auto operation : operations) {
    bytes.push_back(static_cast<std::byte>(operation));
  }
  base::Allowance steps;
  return evaluate(bytes, MadeContext{}, steps, first);
}

constexpr std::uint64_t minus(std::uint64_t value) { return 0 - value; }

// Opcodes from DWARF 4, section 7.7.1.
TEST(UnwindExpression, EvaluatesConstants) {
  EXPECT_EQ(value_of({0x30}), 0U);
  EXPECT_EQ(value_of({0x4f}), 31U);
  EXPECT_EQ(value_of({0x08, 0xff}), 0xffU);
  EXPECT_EQ(value_of({0x09, 0xff}), minus(1));
  EXPECT_EQ(value_of({0x0a, 0x34, 0xf2}), 0xf234U);
  EXPECT_EQ(value_of({0x0b, 0xfe, 0xff}), minus(2));
  EXPECT_EQ(value_of({0x0c, 0x78, 0x56, 0x34, 0xf2}), 0xf2345678U);
  EXPECT_EQ(value_of({0x0d, 0xfd, 0xff, 0xff, 0xff}), minus(3));
  for (const unsigned eight : {0x03U, 0x0eU, 0x0fU}) {
    EXPECT_EQ(value_of({eight, 8, 7, 6, 5, 4, 3, 2, 1}), 0x0102030405060708U);
  }
  EXPECT_EQ(value_of({0x10, 0xe5, 0x8e, 0x26}), 624485U);
  EXPECT_EQ(value_of({0x11, 0x9b, 0xf1, 0x59}), minus(624485));
}

TEST(UnwindExpression, EvaluatesRegisters) {
  EXPECT_EQ(value_of({0x77, 0x08}), 107U + 8);
  EXPECT_EQ(value_of({0x70, 0x7f}), 99U);
  EXPECT_EQ(value_of({0x92, 0x0c, 0x10}), 112U + 16);
  EXPECT_EQ(value_of({0x80, 0x00}), std::nullopt);
  EXPECT_EQ(value_of({0x8f, 0x00}), std::nullopt);
  EXPECT_EQ(value_of({0x92, 0xff, 0x01, 0x00}), std::nullopt);
}

TEST(UnwindExpression, EvaluatesOperationsOnOneValue) {
  EXPECT_EQ(value_of({0x06}, 8), 16U);
  EXPECT_EQ(value_of({0x06}, 0x1000), std::nullopt);
  EXPECT_EQ(value_of({0x12, 0x22}, 4), 8U);
  EXPECT_EQ(value_of({0x35, 0x13}, 4), 4U);
  EXPECT_EQ(value_of({0x1f}, 1), minus(1));
  EXPECT_EQ(value_of({0x20}, 0), ~std::uint64_t{0});
  EXPECT_EQ(value_of({0x23, 0x80, 0x01}, 2), 130U);
  EXPECT_EQ(value_of({0x96}, 5), 5U);
}

TEST(UnwindExpression, EvaluatesOperationsOnTwoValues) {
  const auto of = [](std::uint64_t a, std::uint64_t b, unsigned operation) {
    return value_of({0x08, static_cast<unsigned>(b), operation}, a);
  };
  EXPECT_EQ(of(7, 3, 0x14), 7U);   // over
  EXPECT_EQ(of(7, 3, 0x16), 7U);   // swap
  EXPECT_EQ(of(7, 3, 0x1a), 3U);   // and
  EXPECT_EQ(of(7, 3, 0x1c), 4U);   // minus
  EXPECT_EQ(of(7, 3, 0x1e), 21U);  // mul
  EXPECT_EQ(of(5, 3, 0x21), 7U);   // or
  EXPECT_EQ(of(7, 3, 0x22), 10U);  // plus
  EXPECT_EQ(of(7, 3, 0x24), 56U);  // shl
  EXPECT_EQ(of(7, 1, 0x25), 3U);   // shr
  EXPECT_EQ(of(7, 3, 0x27), 4U);   // xor
  EXPECT_EQ(of(7, 64, 0x24), 0U);
  EXPECT_EQ(of(7, 200, 0x25), 0U);
}

TEST(UnwindExpression, ComparisonsAreSigned) {
  const auto of = [](std::uint64_t a, unsigned operation) {
    return value_of({0x32, operation}, a);  // with 2
  };
  EXPECT_EQ(of(2, 0x29), 1U);
  EXPECT_EQ(of(3, 0x29), 0U);
  EXPECT_EQ(of(2, 0x2e), 0U);
  EXPECT_EQ(of(3, 0x2e), 1U);
  EXPECT_EQ(of(2, 0x2a), 1U);
  EXPECT_EQ(of(minus(1), 0x2a), 0U);
  EXPECT_EQ(of(3, 0x2b), 1U);
  EXPECT_EQ(of(2, 0x2b), 0U);
  EXPECT_EQ(of(2, 0x2c), 1U);
  EXPECT_EQ(of(3, 0x2c), 0U);
  EXPECT_EQ(of(minus(1), 0x2d), 1U);
  EXPECT_EQ(of(2, 0x2d), 0U);
}

// The expression that linkers generate for every PLT: the CFA is %rsp + 8, and 8 more after its
// push.
TEST(UnwindExpression, EvaluatesThatOfAProcedureLinkageTable) {
  EXPECT_EQ(value_of({0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}),
            std::nullopt);  // it uses %rip, which is unknown in this context
  EXPECT_EQ(value_of({0x77, 0x08, 0x7f, 0x00, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}), 115U);
}

TEST(UnwindExpression, FailsIfItTakesMoreThanThereIs) {
  EXPECT_EQ(value_of({}), std::nullopt);
  EXPECT_EQ(value_of({}, 5), 5U);
  for (const unsigned operation : {0x06U, 0x12U, 0x13U, 0x14U, 0x16U, 0x1fU, 0x22U}) {
    EXPECT_EQ(value_of({operation}), std::nullopt) << operation;
  }
  for (const unsigned operation : {0x14U, 0x16U, 0x1aU, 0x22U, 0x2eU}) {
    EXPECT_EQ(value_of({operation}, 1), std::nullopt) << operation;
  }
  EXPECT_EQ(value_of({0x13}, 1), std::nullopt) << "nothing is left";
  EXPECT_EQ(value_of({0x0a, 0x01}), std::nullopt) << "a constant is cut";
  EXPECT_EQ(value_of({0x77}), std::nullopt) << "an offset is cut";
  EXPECT_EQ(value_of({0x23}, 1), std::nullopt) << "an operand is cut";
  EXPECT_EQ(value_of({0xff}, 1), std::nullopt) << "no operation";
  EXPECT_EQ(value_of({0x1b}, 1), std::nullopt) << "a division: not supported";
}

TEST(UnwindExpression, IsBounded) {
  base::Allowance steps;
  const std::vector<std::byte> nops(500, std::byte{0x96});
  EXPECT_EQ(evaluate(nops, MadeContext{}, steps, 5), 5U);
  const std::vector<std::byte> too_many(501, std::byte{0x96});
  EXPECT_EQ(evaluate(too_many, MadeContext{}, steps, 5), std::nullopt);
  const std::vector<std::byte> deep(100, std::byte{0x12});
  EXPECT_EQ(evaluate(deep, MadeContext{}, steps, 5), std::nullopt);
}

TEST(UnwindExpression, TakesFromTheStepsOfItsSample) {
  const std::vector<std::byte> nops(100, std::byte{0x96});
  base::Allowance steps{250};
  EXPECT_EQ(evaluate(nops, MadeContext{}, steps, 5), 5U);
  EXPECT_EQ(evaluate(nops, MadeContext{}, steps, 5), 5U);
  EXPECT_EQ(evaluate(nops, MadeContext{}, steps, 5), std::nullopt);
  EXPECT_TRUE(steps.exhausted());
}

}  // namespace
}  // namespace pyinject::elf
