#include "elf/eh_frame.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <string>

namespace pyinject::elf {
namespace {

using base::ElfAddress;
using Place = SavedRegister::Place;

constexpr ElfAddress kBegin{0x1000};

std::string code(std::initializer_list<int> values) {
  std::string bytes;
  for (const int value : values) {
    bytes += static_cast<char>(value);
  }
  return bytes;
}

std::string words(std::initializer_list<std::uint32_t> values) {
  std::string bytes(values.size() * sizeof(std::uint32_t), '\0');
  std::memcpy(bytes.data(), std::data(values), bytes.size());
  return bytes;
}

std::string entry(const std::string& body) {
  return words({static_cast<std::uint32_t>(body.size())}) + body;
}

// One function of 0x400 bytes with that program. Its common program is the usual one: CFA = rsp +
// 8, the return address at CFA - 8.
EhFrame table_with(const std::string& program, const std::string& augmentation = "zR",
                   int encoding = 0x03) {
  const auto common = entry(words({0}) + code({1}) + augmentation + code({0, 1, 0x78, 16, 1}) +
                            code({encoding, 0x0c, 7, 8, 0x90, 1}));
  const auto back = static_cast<std::uint32_t>(common.size() + 4);
  const auto function = entry(words({back, 0x1000, 0x400}) + code({0}) + program);
  const auto bytes = common + function + words({0});
  const auto* const begin = reinterpret_cast<const std::byte*>(bytes.data());
  return EhFrame{{begin, begin + bytes.size()}, ElfAddress{0x2000}};
}

std::optional<UnwindRow> row_of(const EhFrame& table, ElfAddress pc) {
  base::Allowance steps;
  return table.row_at(pc, steps);
}

TEST(EhFrame, FollowsAFunctionThatSetsUpItsFrame) {
  // push %rbp; mov %rsp,%rbp
  const auto table = table_with(code({0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6}));
  ASSERT_EQ(table.functions().size(), 1U);
  EXPECT_EQ(table.functions()[0].begin, kBegin);
  const auto first = row_of(table, kBegin);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->cfa_register, kStackPointer);
  EXPECT_EQ(first->cfa_offset, 8);
  EXPECT_EQ(first->registers[kReturnAddress].offset, -8);
  EXPECT_EQ(first->registers[kFramePointer].place, Place::kUnchanged);
  const auto pushed = row_of(table, ElfAddress{0x1001});
  EXPECT_EQ(pushed->cfa_offset, 16);
  EXPECT_EQ(pushed->registers[kFramePointer].offset, -16);
  const auto last = row_of(table, ElfAddress{0x13ff});
  EXPECT_EQ(last->cfa_register, kFramePointer);
  EXPECT_FALSE(row_of(table, ElfAddress{0x1400}));
  EXPECT_FALSE(row_of(table, ElfAddress{0xfff}));
}

// As BOLT does where it rewrites a function in place.
TEST(EhFrame, TakesTheFirstOfTwoEntriesOfAFunction) {
  const auto common =
      entry(words({0}) + code({1}) + "zR" + code({0, 1, 0x78, 16, 1, 0x03, 0x0c, 7, 8, 0x90, 1}));
  const auto function = [&](std::uint32_t at, std::uint32_t size, int offset) {
    return entry(words({at + 4, 0x1000, size}) + code({0, 0x0e, offset}));
  };
  const auto at = static_cast<std::uint32_t>(common.size());
  const auto now = function(at, 0x200, 32);
  const auto before = function(at + static_cast<std::uint32_t>(now.size()), 0x400, 16);
  const auto bytes = common + now + before + words({0});
  const auto* const begin = reinterpret_cast<const std::byte*>(bytes.data());
  const EhFrame table{{begin, begin + bytes.size()}, ElfAddress{0x2000}};
  ASSERT_EQ(table.functions().size(), 1U);
  EXPECT_EQ(row_of(table, kBegin)->cfa_offset, 32);
  EXPECT_FALSE(row_of(table, ElfAddress{0x1200}));
}

TEST(EhFrame, RemembersAndRestores) {
  // An early return in the middle: pop, ret; then the previous state continues.
  const auto table = table_with(code({0x0e, 16, 0x86, 2, 0x41, 0x0a, 0xc6, 0x0e, 8, 0x41, 0x0b}));
  EXPECT_EQ(row_of(table, ElfAddress{0x1001})->registers[kFramePointer].place, Place::kUnchanged);
  EXPECT_EQ(row_of(table, ElfAddress{0x1001})->cfa_offset, 8);
  EXPECT_EQ(row_of(table, ElfAddress{0x1002})->registers[kFramePointer].place, Place::kAtCfa);
  EXPECT_EQ(row_of(table, ElfAddress{0x1002})->cfa_offset, 16);
}

TEST(EhFrame, SaysWhereEachRegisterIs) {
  const auto expression = table_with(code({0x0f, 2, 0x77, 8}));
  const auto by_expression = row_of(expression, kBegin);
  EXPECT_FALSE(by_expression->cfa_register);
  EXPECT_EQ(by_expression->cfa_expression.size(), 2U);
  const auto elsewhere = table_with(code({0x09, 6, 3, 0x07, 16, 0x14, 12, 2, 0x10, 13, 1, 0x30}));
  const auto registers = row_of(elsewhere, kBegin)->registers;
  EXPECT_EQ(registers[kFramePointer].place, Place::kInRegister);
  EXPECT_EQ(registers[kFramePointer].offset, 3);
  EXPECT_EQ(registers[kReturnAddress].place, Place::kLost);
  EXPECT_EQ(registers[12].place, Place::kCfaValue);
  EXPECT_EQ(registers[12].offset, -16);
  EXPECT_EQ(registers[13].place, Place::kAtExpression);
  EXPECT_EQ(registers[13].expression.size(), 1U);
  EXPECT_FALSE(row_of(elsewhere, kBegin)->signal_frame);
  EXPECT_TRUE(row_of(table_with({}, "zRS"), kBegin)->signal_frame);
}

TEST(EhFrame, RefusesProgramsThatMakeNoSense) {
  for (const auto& program :
       {code({0x3f}), code({0x0b}), code({0x0e}), code({0x0f, 0x20}), code({0x04, 1}),
        code({0x0e, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})}) {
    EXPECT_FALSE(row_of(table_with(program), kBegin));
  }
  EXPECT_TRUE(table_with("", "zR", 0x9b).functions().empty()) << "an indirect pointer";
  EXPECT_TRUE(table_with("", "zX").functions().empty()) << "an unknown augmentation";
}

// libdw allocates 16 bytes for each register up to the largest number, and a copy for each state.
TEST(EhFrame, TakesNoMemoryForLargeNumbers) {
  const auto large = code({0x05, 0xff, 0xff, 0xff, 0x3f, 1});
  EXPECT_TRUE(row_of(table_with(large + std::string(60, '\x0a')), kBegin));
  EXPECT_FALSE(row_of(table_with(large + std::string(60000, '\x0a')), kBegin));
}

// A row whose program is 64 KiB long and keeps remembering and restoring its state.
TEST(EhFrame, GivesUpARowThatTakesTooManySteps) {
  std::string program;
  for (int i = 0; i < 30'000; ++i) {
    program += "\x0a\x0b";
  }
  const auto table = table_with(program);
  base::Allowance enough;
  EXPECT_TRUE(table.row_at(kBegin, enough));
  EXPECT_GT(enough.taken(), 60'000U);
  base::Allowance few{10'000};
  EXPECT_FALSE(table.row_at(kBegin, few));
  EXPECT_TRUE(few.exhausted());
}

TEST(EhFrame, KeepsOnlySoManyFunctions) {
  std::string bytes = entry(words({0}) + code({1}) + "zR" + code({0, 1, 0x78, 16, 1, 0x03}));
  for (std::uint32_t i = 0; i < 100; ++i) {
    const auto back = static_cast<std::uint32_t>(bytes.size() + 4);
    bytes += entry(words({back, 0x1000 + i, 1}) + code({0}));
  }
  const auto* const begin = reinterpret_cast<const std::byte*>(bytes.data());
  EXPECT_EQ(EhFrame({begin, begin + bytes.size()}, kBegin).functions().size(), 100U);
  EXPECT_EQ(EhFrame({begin, begin + bytes.size()}, kBegin, 10).functions().size(), 10U);
}

TEST(EhFrame, EndsWhereItsBytesEnd) {
  EXPECT_TRUE(EhFrame({}, kBegin).functions().empty());
  for (const auto length : {0xfffffff0U, 0xffffffffU, 3U, 5U}) {
    const auto bytes = words({length, 0});
    const auto* const begin = reinterpret_cast<const std::byte*>(bytes.data());
    EXPECT_TRUE(EhFrame({begin, begin + bytes.size()}, kBegin).functions().empty());
  }
}

}  // namespace
}  // namespace pyinject::elf
