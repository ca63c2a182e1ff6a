#include "unwind/registers.hpp"

#include "elf/call_frame_info.hpp"

#include <gtest/gtest.h>

#include <asm/perf_regs.h>

namespace pyinject::unwind {
namespace {

// perf's register N contains 1000 + N.
std::array<std::uint64_t, 64> numbered() {
  std::array<std::uint64_t, 64> values{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = 1000 + i;
  }
  return values;
}

constexpr std::uint64_t bit(unsigned number) { return std::uint64_t{1} << number; }

// The registers that perf requests on x86-64: all but the segments and flags of 32-bit kernels.
constexpr std::uint64_t kAll = 0xff0fff;

TEST(Registers, AreTakenFromPerfsNumbers) {
  const auto registers = from_perf(numbered(), kAll);
  ASSERT_TRUE(registers);
  EXPECT_EQ(registers->pc(), 1000U + PERF_REG_X86_IP);
  EXPECT_EQ(registers->sp(), 1000U + PERF_REG_X86_SP);
  EXPECT_EQ(registers->fp(), 1000U + PERF_REG_X86_BP);
  // System V ABI x86-64, figure 3.36: rax rdx rcx rbx rsi rdi rbp rsp r8 to r15.
  EXPECT_EQ(registers->get(0), 1000U + PERF_REG_X86_AX);
  EXPECT_EQ(registers->get(1), 1000U + PERF_REG_X86_DX);
  EXPECT_EQ(registers->get(2), 1000U + PERF_REG_X86_CX);
  EXPECT_EQ(registers->get(3), 1000U + PERF_REG_X86_BX);
  EXPECT_EQ(registers->get(4), 1000U + PERF_REG_X86_SI);
  EXPECT_EQ(registers->get(5), 1000U + PERF_REG_X86_DI);
  for (unsigned i = 8; i < 16; ++i) {
    EXPECT_EQ(registers->get(i), 1000U + PERF_REG_X86_R8 + i - 8);
  }
  EXPECT_EQ(registers->get(17), std::nullopt);
  EXPECT_EQ(registers->get(~std::uint64_t{0}), std::nullopt);
}

TEST(Registers, KnowOnlyThoseInTheMask) {
  const auto registers = from_perf(numbered(), bit(PERF_REG_X86_SP) | bit(PERF_REG_X86_IP));
  ASSERT_TRUE(registers);
  EXPECT_FALSE(registers->knows(elf::kFramePointer));
  EXPECT_EQ(registers->get(elf::kStackPointer), 1000U + PERF_REG_X86_SP);
}

TEST(Registers, NeedProgramCounterAndStackPointer) {
  EXPECT_FALSE(from_perf(numbered(), kAll & ~bit(PERF_REG_X86_IP)));
  EXPECT_FALSE(from_perf(numbered(), kAll & ~bit(PERF_REG_X86_SP)));
  EXPECT_FALSE(from_perf(numbered(), 0));
  EXPECT_FALSE(from_perf({}, kAll));
}

TEST(Registers, ACallPreservesWhatTheAbiSays) {
  std::uint32_t expected = 0;
  for (const unsigned number : {3U, 6U, 7U, 12U, 13U, 14U, 15U}) {
    expected |= 1U << number;
  }
  EXPECT_EQ(preserved_by_calls(), expected);
}

}  // namespace
}  // namespace pyinject::unwind
