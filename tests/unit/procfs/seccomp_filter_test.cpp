#include "procfs/seccomp_filter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/syscall.h>

namespace pyinject::procfs {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

sock_filter statement(std::uint16_t code, std::uint32_t k) { return {code, 0, 0, k}; }
sock_filter jump(std::uint16_t code, std::uint32_t k, std::uint8_t yes, std::uint8_t no) {
  return {code, yes, no, k};
}
sock_filter load(std::uint32_t offset) { return statement(BPF_LD | BPF_W | BPF_ABS, offset); }
sock_filter leave(std::uint32_t value) { return statement(BPF_RET | BPF_K, value); }
sock_filter equals(std::uint32_t k, std::uint8_t yes, std::uint8_t no) {
  return jump(BPF_JMP | BPF_JEQ | BPF_K, k, yes, no);
}

// Returns VALUE for the call NUMBER, OTHERWISE for all others.
SeccompProgram only(std::uint32_t number, std::uint32_t value,
                    std::uint32_t otherwise = SECCOMP_RET_ALLOW) {
  return {load(0), equals(number, 0, 1), leave(value), leave(otherwise)};
}

SystemCall call(std::uint32_t number) {
  SystemCall result;
  result.number = number;
  return result;
}

std::vector<std::string> names(const std::vector<SeccompProblem>& problems) {
  std::vector<std::string> result;
  for (const auto& problem : problems) {
    result.emplace_back(problem.call);
  }
  return result;
}

TEST(SeccompEvaluate, DecidesByNumberAndArchitecture) {
  const SeccompProgram program{load(4),
                               equals(AUDIT_ARCH_X86_64, 1, 0),
                               leave(SECCOMP_RET_KILL_PROCESS),
                               load(0),
                               equals(SYS_write, 0, 1),
                               leave(SECCOMP_RET_ERRNO | 13U),
                               leave(SECCOMP_RET_ALLOW)};
  EXPECT_EQ(evaluate(program, call(SYS_write)), SECCOMP_RET_ERRNO | 13U);
  EXPECT_EQ(evaluate(program, call(SYS_read)), SECCOMP_RET_ALLOW);
  auto i386 = call(SYS_write);
  i386.arch = AUDIT_ARCH_I386;
  EXPECT_EQ(evaluate(program, i386), SECCOMP_RET_KILL_PROCESS);
}

TEST(SeccompEvaluate, CalculatesAsTheKernelDoes) {
  const auto result = [](std::uint16_t code, std::uint32_t a, std::uint32_t b) {
    const SeccompProgram program{statement(BPF_LDX | BPF_IMM, b),
                                 statement(BPF_LD | BPF_IMM, a),
                                 statement(static_cast<std::uint16_t>(BPF_ALU | code | BPF_X), 0),
                                 statement(BPF_ST, 3),
                                 statement(BPF_LD | BPF_IMM, 99),
                                 statement(BPF_LD | BPF_MEM, 3),
                                 statement(BPF_RET | BPF_A, 0)};
    return evaluate(program, SystemCall{});
  };
  EXPECT_EQ(result(BPF_ADD, 0xffffffff, 2), 1U);
  EXPECT_EQ(result(BPF_SUB, 1, 2), 0xffffffffU);
  EXPECT_EQ(result(BPF_MUL, 7, 6), 42U);
  EXPECT_EQ(result(BPF_DIV, 42, 5), 8U);
  EXPECT_EQ(result(BPF_DIV, 42, 0), 0U);
  EXPECT_EQ(result(BPF_AND, 12, 10), 8U);
  EXPECT_EQ(result(BPF_OR, 12, 10), 14U);
  EXPECT_EQ(result(BPF_XOR, 12, 10), 6U);
  EXPECT_EQ(result(BPF_LSH, 1, 4), 16U);
  EXPECT_EQ(result(BPF_RSH, 16, 4), 1U);
  EXPECT_EQ(evaluate(SeccompProgram{statement(BPF_LD | BPF_IMM, 1), statement(BPF_ALU | BPF_NEG, 0),
                                    statement(BPF_RET | BPF_A, 0)},
                     SystemCall{}),
            0xffffffffU);
}

TEST(SeccompEvaluate, ReadsBothHalvesOfArguments) {
  auto known = call(SYS_mmap);
  known.args[2] = 0x1234567800000005;
  EXPECT_EQ(evaluate(SeccompProgram{load(32), statement(BPF_RET | BPF_A, 0)}, known), 5U);
  EXPECT_EQ(evaluate(SeccompProgram{load(36), statement(BPF_RET | BPF_A, 0)}, known), 0x12345678U);
  EXPECT_EQ(evaluate(SeccompProgram{load(16), statement(BPF_RET | BPF_A, 0)}, known), std::nullopt);
  EXPECT_EQ(evaluate(SeccompProgram{load(8), statement(BPF_RET | BPF_A, 0)}, known), std::nullopt)
      << "depends on the instruction pointer";
  EXPECT_EQ(evaluate(SeccompProgram{load(16), equals(1, 0, 0), leave(SECCOMP_RET_ALLOW)}, known),
            SECCOMP_RET_ALLOW)
      << "loaded, but not used";
}

TEST(SeccompEvaluate, DoesNotKnowDamagedPrograms) {
  const auto value = [](const SeccompProgram& program) { return evaluate(program, SystemCall{}); };
  EXPECT_EQ(value({}), std::nullopt);
  EXPECT_EQ(value({load(0)}), std::nullopt) << "no end";
  EXPECT_EQ(value({load(2), leave(0)}), std::nullopt);
  EXPECT_EQ(value({load(64), leave(0)}), std::nullopt);
  EXPECT_EQ(value({statement(BPF_LD | BPF_H | BPF_ABS, 0), leave(0)}), std::nullopt);
  EXPECT_EQ(value({statement(BPF_LD | BPF_MEM, 16), leave(0)}), std::nullopt);
  EXPECT_EQ(value({statement(BPF_ST, 16), leave(0)}), std::nullopt);
  EXPECT_EQ(value({statement(BPF_JMP | BPF_JA, 0xffffffff), leave(0)}), std::nullopt);
  EXPECT_EQ(value(SeccompProgram(BPF_MAXINSNS + 1, leave(0))), std::nullopt);
  // Instructions that the kernel rejects, although nothing depends on them.
  for (const int code : {BPF_ALU | BPF_MOD | BPF_X, BPF_ALU | BPF_NEG | BPF_X, BPF_ALU | BPF_DIV,
                         BPF_JMP | 0xf0, BPF_ST | BPF_X}) {
    EXPECT_EQ(value({statement(static_cast<std::uint16_t>(code), 0), leave(0)}), std::nullopt);
  }
  EXPECT_EQ(value({statement(BPF_ALU | BPF_LSH, 32), leave(0)}), std::nullopt);
}

TEST(SeccompEvaluate, SurvivesAnyBytes) {
  std::minstd_rand random{42};  // NOLINT(cert-msc51-cpp,cert-msc32-c): the same bytes in each run
  for (int round = 0; round < 20000; ++round) {
    SeccompProgram program(1 + random() % 12);
    for (auto& instruction : program) {
      instruction = {static_cast<std::uint16_t>(random() % 512),
                     static_cast<std::uint8_t>(random() % 4),
                     static_cast<std::uint8_t>(random() % 4),
                     static_cast<std::uint32_t>(random() % (round % 2 == 0 ? 70 : 0x7fffffff))};
    }
    (void)evaluate(program, call(static_cast<std::uint32_t>(round % 300)));
  }
}

TEST(SeccompWorstOf, TakesTheStrictestOfAllFilters) {
  const auto worst = [](std::uint32_t one, std::uint32_t other) {
    const std::vector<SeccompProgram> filters{{leave(one)}, {leave(other)}};
    return worst_of(filters, call(SYS_write));
  };
  EXPECT_EQ(worst(SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | 1U), SECCOMP_RET_ERRNO | 1U);
  EXPECT_EQ(worst(SECCOMP_RET_KILL_THREAD, SECCOMP_RET_TRAP), SECCOMP_RET_KILL_THREAD);
  EXPECT_EQ(worst(SECCOMP_RET_KILL_THREAD, SECCOMP_RET_KILL_PROCESS), SECCOMP_RET_KILL_PROCESS);
  EXPECT_EQ(worst_of({}, call(SYS_write)), SECCOMP_RET_ALLOW);
  const std::vector<SeccompProgram> unclear{{load(1)}, {leave(SECCOMP_RET_ERRNO)}};
  EXPECT_EQ(worst_of(unclear, call(SYS_write)), std::nullopt);
  const std::vector<SeccompProgram> clear{{load(1)}, {leave(SECCOMP_RET_KILL_PROCESS)}};
  EXPECT_EQ(worst_of(clear, call(SYS_write)), SECCOMP_RET_KILL_PROCESS);
}

TEST(SeccompOutcome, IsWhatHappensToTheCaller) {
  EXPECT_EQ(outcome_of(SECCOMP_RET_ALLOW), SeccompOutcome::kAllowed);
  EXPECT_EQ(outcome_of(SECCOMP_RET_LOG), SeccompOutcome::kAllowed);
  EXPECT_EQ(outcome_of(SECCOMP_RET_ERRNO | 38U), SeccompOutcome::kFails);
  EXPECT_EQ(outcome_of(SECCOMP_RET_TRACE), SeccompOutcome::kFails);
  EXPECT_EQ(outcome_of(SECCOMP_RET_TRAP), SeccompOutcome::kKills);
  EXPECT_EQ(outcome_of(SECCOMP_RET_KILL_THREAD), SeccompOutcome::kKills);
  EXPECT_EQ(outcome_of(SECCOMP_RET_KILL_PROCESS), SeccompOutcome::kKills);
  EXPECT_EQ(outcome_of(0x12340000), SeccompOutcome::kKills);
  EXPECT_EQ(outcome_of(SECCOMP_RET_USER_NOTIF), SeccompOutcome::kUnknown);
  EXPECT_EQ(outcome_of(std::nullopt), SeccompOutcome::kUnknown);
}

TEST(SeccompJudge, FindsNothingAgainstHarmlessFilters) {
  EXPECT_THAT(judge({}), IsEmpty());
  const std::vector<SeccompProgram> filters{only(SYS_reboot, SECCOMP_RET_KILL_PROCESS)};
  EXPECT_THAT(judge(filters), IsEmpty());
}

TEST(SeccompJudge, NamesTheCallThatKills) {
  const std::vector<SeccompProgram> filters{only(SYS_munmap, SECCOMP_RET_KILL_PROCESS)};
  const auto problems = judge(filters);
  ASSERT_THAT(names(problems), ElementsAre("munmap"));
  EXPECT_EQ(problems[0].outcome, SeccompOutcome::kKills);
  EXPECT_TRUE(problems[0].certain);
}

TEST(SeccompJudge, IsNotCertainOfOneOfAPair) {
  const std::vector<SeccompProgram> one{only(SYS_open, SECCOMP_RET_KILL_PROCESS)};
  ASSERT_THAT(names(judge(one)), ElementsAre("open"));
  EXPECT_FALSE(judge(one)[0].certain);
  const std::vector<SeccompProgram> both{only(SYS_open, SECCOMP_RET_KILL_PROCESS),
                                         only(SYS_openat, SECCOMP_RET_ERRNO)};
  ASSERT_THAT(names(judge(both)), ElementsAre("openat", "open"));
  EXPECT_TRUE(judge(both)[0].certain);
  EXPECT_TRUE(judge(both)[1].certain);
}

TEST(SeccompJudge, KnowsMemoryDenyWriteExecute) {
  // systemd: mmap with PROT_EXEC and PROT_WRITE, and mprotect with PROT_EXEC, are EPERM.
  const std::vector<SeccompProgram> filters{
      {load(0), equals(SYS_mmap, 3, 0), equals(SYS_mprotect, 0, 5), load(32),
       jump(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 2, 3), load(32),
       equals(PROT_EXEC | PROT_WRITE, 0, 1), leave(SECCOMP_RET_ERRNO | 1U),
       leave(SECCOMP_RET_ALLOW)}};
  const auto problems = judge(filters);
  ASSERT_THAT(names(problems), ElementsAre("mprotect"));
  EXPECT_EQ(problems[0].outcome, SeccompOutcome::kFails);
}

TEST(SeccompJudge, NamesEveryCallOfAStrictAllowList) {
  const std::vector<SeccompProgram> filters{
      only(SYS_write, SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS)};
  const auto problems = judge(filters);
  EXPECT_THAT(names(problems), testing::IsSupersetOf({"mmap", "mprotect", "openat", "futex"}));
  EXPECT_THAT(names(problems), testing::Not(testing::Contains("write")));
}

}  // namespace
}  // namespace pyinject::procfs
