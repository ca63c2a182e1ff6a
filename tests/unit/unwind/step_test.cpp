#include "unwind/step.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace pyinject::unwind {
namespace {

constexpr std::uint64_t kStack = 0x7000;
constexpr std::size_t kRbx = 3;
constexpr std::size_t kRcx = 2;
constexpr std::size_t kR12 = 12;
constexpr std::size_t kRbp = elf::kFramePointer;

// The word at kStack + 8 N is 0x100 + N.
class StepTest : public testing::Test {
 protected:
  StepTest() {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      words_[i] = 0x100 + i;
    }
    registers_.set(kRbp, kStack + 16);
    registers_.set(kRbx, 0xb0b0);
    registers_.set(kRcx, 0xc0c0);
    registers_.set(elf::kStackPointer, kStack);
    registers_.set(elf::kReturnAddress, 0x1234);
  }
  [[nodiscard]] StackDump dump() const {
    return {.begin = kStack, .bytes = std::as_bytes(std::span{words_})};
  }

  std::vector<std::uint64_t> words_ = std::vector<std::uint64_t>(8);
  Registers registers_;
  base::Allowance steps_;
};

using ByRule = StepTest;
using ByRow = StepTest;
using ByTrampoline = StepTest;
using ByFramePointer = StepTest;

TEST_F(StepTest, AWordIsInTheDumpOrNot) {
  EXPECT_EQ(dump().word_at(kStack), 0x100U);
  EXPECT_EQ(dump().word_at(kStack + 56), 0x107U);
  EXPECT_EQ(dump().word_at(kStack + 57), std::nullopt);
  EXPECT_EQ(dump().word_at(kStack + 64), std::nullopt);
  EXPECT_EQ(dump().word_at(kStack - 1), std::nullopt);
  EXPECT_EQ(dump().word_at(~std::uint64_t{0}), std::nullopt);
  EXPECT_EQ((StackDump{.begin = ~std::uint64_t{0} - 3, .bytes = dump().bytes}).word_at(8),
            std::nullopt);
}

// After push %rbp, push %rbx and sub $16,%rsp.
constexpr Rule kRule{
    .kind = Rule::Kind::kFast,
    .cfa_register = elf::kStackPointer,
    .cfa_offset = 40,
    .return_address = -8,
    .frame_pointer = -16,
    .others = {-24, Rule::kUnchanged, Rule::kUnchanged, Rule::kUnchanged, Rule::kUnchanged}};

TEST_F(ByRule, RestoresWhatItSays) {
  ASSERT_EQ(by_rule(kRule, dump(), registers_), Step::kDone);
  EXPECT_EQ(registers_.sp(), kStack + 40);
  EXPECT_EQ(registers_.pc(), 0x104U);
  EXPECT_EQ(registers_.fp(), 0x103U);
  EXPECT_EQ(registers_.get(kRbx), 0x102U);
  EXPECT_FALSE(registers_.knows(kRcx)) << "a call does not preserve it";
  EXPECT_FALSE(registers_.knows(kR12)) << "it was unknown before";
}

TEST_F(ByRule, TakesAPoppedValueFromItsRegister) {
  auto at_return = kRule;
  at_return.cfa_offset = 8;
  at_return.others[0] = Rule::kUnchanged;
  ASSERT_EQ(by_rule(at_return, dump(), registers_), Step::kDone);
  EXPECT_EQ(registers_.pc(), 0x100U);
  EXPECT_EQ(registers_.fp(), kStack + 16);
}

TEST_F(ByRule, FollowsTheFramePointer) {
  auto rule = kRule;
  rule.cfa_register = kRbp;
  rule.cfa_offset = 16;
  rule.others[0] = Rule::kUnchanged;
  ASSERT_EQ(by_rule(rule, dump(), registers_), Step::kDone);
  EXPECT_EQ(registers_.sp(), kStack + 32);
  EXPECT_EQ(registers_.pc(), 0x103U);
  EXPECT_EQ(registers_.get(kRbx), 0xb0b0U);
}

TEST_F(ByRule, FailsOutsideOfTheDump) {
  auto rule = kRule;
  rule.cfa_offset = 72;
  const auto before = registers_.values;
  EXPECT_EQ(by_rule(rule, dump(), registers_), Step::kOutside);
  rule.cfa_offset = 68;
  EXPECT_EQ(by_rule(rule, dump(), registers_), Step::kOutside) << "crosses the end";
  EXPECT_EQ(registers_.values, before) << "a failing step changes nothing";
}

TEST_F(ByRule, AStackDoesNotShrink) {
  for (const std::int32_t offset : {0, -8, -0x7000}) {
    auto rule = kRule;
    rule.cfa_offset = offset;
    EXPECT_EQ(by_rule(rule, dump(), registers_), Step::kBroken) << offset;
  }
  auto rule = kRule;
  rule.cfa_register = kR12;
  EXPECT_EQ(by_rule(rule, dump(), registers_), Step::kBroken) << "a register is unknown";
}

TEST_F(ByRule, ARegisterOutsideOfTheDumpIsForgotten) {
  auto rule = kRule;
  rule.frame_pointer = 1000;
  ASSERT_EQ(by_rule(rule, dump(), registers_), Step::kDone);
  EXPECT_FALSE(registers_.knows(kRbp));
}

elf::SavedRegister at_cfa(std::int64_t offset) {
  return {.place = elf::SavedRegister::Place::kAtCfa, .offset = offset};
}

elf::UnwindRow row() {
  elf::UnwindRow row;
  row.cfa_register = elf::kStackPointer;
  row.cfa_offset = 24;
  row.registers[elf::kReturnAddress] = at_cfa(-8);
  return row;
}

TEST_F(ByRow, DoesWhatARuleDoes) {
  auto same = row();
  same.cfa_offset = 40;
  same.registers[kRbp] = at_cfa(-16);
  same.registers[kRbx] = at_cfa(-24);
  auto by_the_rule = registers_;
  ASSERT_EQ(by_rule(kRule, dump(), by_the_rule), Step::kDone);
  ASSERT_EQ(by_row(same, dump(), steps_, registers_), Step::kDone);
  EXPECT_EQ(registers_.known, by_the_rule.known);
  for (std::size_t i = 0; i < kRegisters; ++i) {
    EXPECT_EQ(registers_.get(i), by_the_rule.get(i)) << i;
  }
}

TEST_F(ByRow, RestoresRegistersFromEveryPlace) {
  using Place = elf::SavedRegister::Place;
  const std::array at_top{std::byte{0x77}, std::byte{0x00}};    // breg7 0
  const std::array two_more{std::byte{0x23}, std::byte{0x02}};  // plus_uconst 2, on the CFA
  auto places = row();
  places.registers[kRbp] = {.place = Place::kCfaValue, .offset = -8};
  places.registers[kRbx] = {.place = Place::kAtExpression, .expression = at_top};
  places.registers[kR12] = {.place = Place::kExpression, .expression = two_more};
  places.registers[13] = {.place = Place::kInRegister, .offset = kRbx};
  places.registers[14] = {.place = Place::kInRegister, .offset = -1};
  places.registers[15] = {.place = Place::kLost};
  registers_.set(15, 1);
  ASSERT_EQ(by_row(places, dump(), steps_, registers_), Step::kDone);
  EXPECT_EQ(registers_.pc(), 0x102U);
  EXPECT_EQ(registers_.sp(), kStack + 24);
  EXPECT_EQ(registers_.fp(), kStack + 16);
  EXPECT_EQ(registers_.get(kRbx), 0x100U);
  EXPECT_EQ(registers_.get(kR12), kStack + 26);
  EXPECT_EQ(registers_.get(13), 0xb0b0U);
  EXPECT_FALSE(registers_.knows(14));
  EXPECT_FALSE(registers_.knows(15));
}

TEST_F(ByRow, TheCfaMayBeAnExpression) {
  const std::array expression{std::byte{0x77}, std::byte{0x18}};  // breg7 24
  auto by_expression = row();
  by_expression.cfa_register.reset();
  by_expression.cfa_expression = expression;
  ASSERT_EQ(by_row(by_expression, dump(), steps_, registers_), Step::kDone);
  EXPECT_EQ(registers_.sp(), kStack + 24);
  by_expression.cfa_expression = {};
  EXPECT_EQ(by_row(by_expression, dump(), steps_, registers_), Step::kBroken);
}

TEST_F(ByRow, FailsOutsideOfTheDump) {
  auto far = row();
  far.registers[elf::kReturnAddress] = at_cfa(1000);
  EXPECT_EQ(by_row(far, dump(), steps_, registers_), Step::kOutside);
  far.registers[elf::kReturnAddress] = at_cfa(-1000);
  EXPECT_EQ(by_row(far, dump(), steps_, registers_), Step::kBroken);
  far.registers[elf::kReturnAddress] = {.place = elf::SavedRegister::Place::kLost};
  EXPECT_EQ(by_row(far, dump(), steps_, registers_), Step::kBroken);
}

// A signal handler's stack may be above the one that it interrupts, and all registers of its caller
// are known.
TEST_F(ByRow, OnlyASignalFrameMayShrinkTheStack) {
  auto below = row();
  below.registers[elf::kStackPointer] = at_cfa(-24);
  below.registers[kRcx] = at_cfa(-16);
  EXPECT_EQ(by_row(below, dump(), steps_, registers_), Step::kBroken);
  below.signal_frame = true;
  ASSERT_EQ(by_row(below, dump(), steps_, registers_), Step::kDone);
  EXPECT_EQ(registers_.sp(), 0x100U);
  EXPECT_EQ(registers_.get(kRcx), 0x101U);
  EXPECT_EQ(registers_.pc(), 0x102U);
}

// As in glibc's vfork(2): the return address is in a register while the stack is already the
// caller's.
TEST_F(ByRow, AReturnAddressInARegisterTakesNoStack) {
  auto popped = row();
  popped.cfa_offset = 0;
  popped.registers[elf::kReturnAddress] = {.place = elf::SavedRegister::Place::kInRegister,
                                           .offset = kRcx};
  ASSERT_EQ(by_row(popped, dump(), steps_, registers_), Step::kDone);
  EXPECT_EQ(registers_.pc(), 0xc0c0U);
  EXPECT_EQ(registers_.sp(), kStack);
  EXPECT_EQ(by_row(popped, dump(), steps_, registers_), Step::kBroken) << "only once";
  popped.cfa_offset = -8;
  registers_.set(kRcx, 1);
  EXPECT_EQ(by_row(popped, dump(), steps_, registers_), Step::kBroken);
}

struct Shape {
  std::uint64_t size = 0;
  std::uint64_t pushed = 0;  // from this offset on, the stack has one more word
  bool frame = false;        // which is the caller's %rbp
};

// Objects/asm_trampoline.S: sub $8,%rsp takes 4 bytes, push %rbp 1, endbr64 4.
TEST_F(ByTrampoline, StepsOutOfBothShapesAtEveryOffset) {
  for (const Shape& shape :
       {Shape{11, 4, false}, Shape{15, 8, false}, Shape{8, 1, true}, Shape{12, 5, true}}) {
    const Trampoline trampoline{.begin = 0x5000, .size = shape.size};
    for (std::uint64_t offset = 0; offset < shape.size; ++offset) {
      auto registers = registers_;
      registers.set(elf::kReturnAddress, trampoline.begin + offset);
      ASSERT_EQ(by_trampoline(trampoline, dump(), registers), Step::kDone);
      const bool entered = offset >= shape.pushed && offset + 1 < shape.size;  // ret is last
      const auto where = ::testing::Message() << "size " << shape.size << " offset " << offset;
      EXPECT_EQ(registers.pc(), entered ? 0x101U : 0x100U) << where;
      EXPECT_EQ(registers.sp(), kStack + (entered ? 16 : 8)) << where;
      EXPECT_EQ(registers.fp(), entered && shape.frame ? 0x100U : kStack + 16) << where;
      EXPECT_EQ(registers.get(kRbx), 0xb0b0U) << where;
      EXPECT_FALSE(registers.knows(kRcx)) << where;
    }
  }
}

TEST_F(ByTrampoline, FailsForAnUnknownShape) {
  for (const std::uint64_t size : {0U, 1U, 7U, 9U, 10U, 13U, 14U, 16U, 1U << 20U}) {
    registers_.set(elf::kReturnAddress, 0x5000);
    EXPECT_EQ(by_trampoline({.begin = 0x5000, .size = size}, dump(), registers_), Step::kBroken);
  }
}

TEST_F(ByTrampoline, FailsOutsideOfTheDump) {
  registers_.set(elf::kReturnAddress, 0x5000);
  registers_.set(elf::kStackPointer, kStack + 64);
  EXPECT_EQ(by_trampoline({.begin = 0x5000, .size = 11}, dump(), registers_), Step::kOutside);
  registers_.set(elf::kStackPointer, kStack - 64);
  EXPECT_EQ(by_trampoline({.begin = 0x5000, .size = 8}, dump(), registers_), Step::kBroken);
}

TEST_F(ByFramePointer, StepsToTheCaller) {
  registers_.set(kR12, 1);
  ASSERT_EQ(by_frame_pointer(dump(), registers_), Step::kDone);
  EXPECT_EQ(registers_.fp(), 0x102U);
  EXPECT_EQ(registers_.pc(), 0x103U);
  EXPECT_EQ(registers_.sp(), kStack + 32);
  EXPECT_FALSE(registers_.knows(kRbx)) << "its saved location is unknown";
  EXPECT_FALSE(registers_.knows(kR12));
}

TEST_F(ByFramePointer, StepsOnlyWhereItPointsIntoTheStackAbove) {
  for (const std::uint64_t value : {std::uint64_t{0}, kStack + 4, kStack - 8, kStack + 56,
                                    kStack + 64, ~std::uint64_t{0} - 7}) {
    registers_.set(kRbp, value);
    EXPECT_EQ(by_frame_pointer(dump(), registers_), Step::kNotThere) << value;
  }
  registers_.forget(kRbp);
  EXPECT_EQ(by_frame_pointer(dump(), registers_), Step::kNotThere);
}

}  // namespace
}  // namespace pyinject::unwind
