// The share of the budget that a hostile process can use, and that its neighbors are not affected.
#include "base/budget.hpp"

#include "support/made_elf.hpp"
#include "support/made_perf_data.hpp"
#include "unwind/unwinder.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>

namespace pyinject::unwind {
namespace {

constexpr ProcessNumber kHostile = 10;
constexpr ProcessNumber kInnocent = 20;
constexpr std::uint64_t kFile = 0x10000000;  // address of the first file
constexpr std::uint64_t kApart = 0x10000000;
constexpr std::uint64_t kBudgetStack = 0x7000;
constexpr std::uint32_t kFunction = 0x1000;
constexpr std::uint64_t kWholeTable = std::uint64_t{64} << 20U;

class MadeFiles : public FileFinder {
 public:
  [[nodiscard]] std::vector<base::UniqueFd> candidates(const MappedFile& file) override {
    ++asked[file.inode];
    std::vector<base::UniqueFd> found;
    found.emplace_back(::fcntl(files.at(file.inode).get(), F_DUPFD_CLOEXEC, 0));
    return found;
  }
  std::map<std::uint64_t, base::UniqueFd> files;  // by inode
  std::map<std::uint64_t, int> asked;
};

class EmptyTrampolineFinder : public TrampolineFinder {
 public:
  [[nodiscard]] std::optional<Trampoline> find(ProcessNumber /*pid*/,
                                               std::uint64_t /*address*/) const override {
    return std::nullopt;
  }
};

class UnwindBudget : public testing::Test {
 protected:
  // Maps the file INODE into PID as mapping NUMBER. Processes with the same INODE share the file.
  void map(ProcessNumber pid, std::uint64_t inode, std::uint64_t number = 0) {
    const auto begin = kFile + number * kApart;
    spaces_.map(0, pid,
                {.begin = begin,
                 .end = begin + kFunction,
                 .executable = true,
                 .path = "/made",
                 .inode = inode});
  }
  // Unwinds DEPTH return addresses into the first COUNT files; the last address is 0.
  Unwound unwind(ProcessNumber pid, std::size_t depth, std::size_t count = 1) {
    std::vector<std::uint64_t> words;
    for (std::size_t i = 1; i < depth; ++i) {
      words.push_back(kFile + i % count * kApart + 1 + i % (kFunction - 1));
    }
    words.push_back(0);
    Registers registers;
    registers.values.fill(0);
    registers.known = (1U << kRegisters) - 1;
    registers.set(elf::kReturnAddress, kFile);
    registers.set(elf::kStackPointer, kBudgetStack);
    chain_.clear();
    return unwinder_.unwind(pid, 1, registers,
                            {.begin = kBudgetStack, .bytes = std::as_bytes(std::span{words})},
                            chain_);
  }

  std::shared_ptr<base::RecordingBudget> budget_ = std::make_shared<base::RecordingBudget>();
  MadeFiles files_;
  EmptyTrampolineFinder none_;
  AddressSpaces spaces_{budget_};
  Objects objects_{files_, budget_};
  Unwinder unwinder_{spaces_, objects_, none_, budget_};
  std::vector<std::uint64_t> chain_;
};

TEST_F(UnwindBudget, EndsAStackWhoseExpressionsTakeTooLong) {
  files_.files[1] = test::made_elf(test::made_unwind_table(test::slow_unwind_program(), kFunction));
  map(kHostile, 1);
  spaces_.complete();
  const auto unwound = unwind(kHostile, 2048);
  EXPECT_EQ(unwound.end, EndOfStack::kBroken);
  EXPECT_TRUE(unwound.too_slow);
  EXPECT_GT(chain_.size(), 10U);
  EXPECT_LT(chain_.size(), 500U);
  EXPECT_LE(budget_->steps.spent(), 1'000'000U);
}

TEST_F(UnwindBudget, CutsOnlyTheProcessThatHasUsedItsStepsUp) {
  files_.files[1] = test::made_elf(test::made_unwind_table(test::slow_unwind_program(), kFunction));
  files_.files[2] = test::made_elf(test::made_unwind_table("", kFunction));
  map(kHostile, 1);
  map(kInnocent, 2);
  spaces_.complete();
  budget_->steps.charge(kHostile, budget_->steps.left(kHostile));
  const auto before = budget_->steps.spent();
  EXPECT_TRUE(unwind(kHostile, 2048).too_slow);
  EXPECT_LT(chain_.size(), 3U) << "only a few steps are free";
  EXPECT_EQ(budget_->steps.spent(), before);
  const auto innocent = unwind(kInnocent, 2000);
  EXPECT_EQ(innocent.end, EndOfStack::kWhole);
  EXPECT_FALSE(innocent.too_slow);
  EXPECT_EQ(chain_.size(), 2000U);
}

// A row program of 60 KB for each address, and no address repeats.
TEST_F(UnwindBudget, EndsAStackWhoseRowsTakeTooLong) {
  files_.files[1] = test::made_elf(test::made_unwind_table(test::long_unwind_program(), kFunction));
  map(kHostile, 1);
  spaces_.complete();
  EXPECT_TRUE(unwind(kHostile, 2048).too_slow);
  EXPECT_LT(chain_.size(), 50U);
}

TEST_F(UnwindBudget, KeepsNothingOfHoles) {
  constexpr std::uint64_t kFiles = 40;
  for (std::uint64_t i = 0; i < kFiles; ++i) {
    files_.files[i + 1] = test::made_elf(test::made_unwind_table("", kFunction), kWholeTable);
    map(kHostile, i + 1, i);
  }
  spaces_.complete();
  const auto unwound = unwind(kHostile, 2 * kFiles, kFiles);
  EXPECT_EQ(unwound.end, EndOfStack::kWhole);
  EXPECT_LT(budget_->bytes.spent(), 1U << 20U);
}

// One entry of nearly 64 MiB each: everything before the end has to be kept.
TEST_F(UnwindBudget, RefusesTablesBeyondTheShareOfTheirProcess) {
  constexpr std::uint64_t kFiles = 40;
  std::string table = test::made_unwind_table("", kFunction);
  const auto rest = static_cast<std::uint32_t>(kWholeTable - table.size());
  table.replace(table.size() - sizeof rest, sizeof rest, test::packed(rest));
  for (std::uint64_t i = 0; i < kFiles; ++i) {
    files_.files[i + 1] = test::made_elf(table, kWholeTable);
    map(kHostile, i + 1, i);
  }
  files_.files[100] = test::made_elf(test::made_unwind_table("", kFunction));
  map(kInnocent, 100);
  spaces_.complete();
  const auto unwound = unwind(kHostile, 2 * kFiles, kFiles);
  EXPECT_TRUE(unwound.too_large);
  EXPECT_EQ(unwound.end, EndOfStack::kNoInformation);
  for (int sample = 0; sample < 10; ++sample) {
    (void)unwind(kHostile, 2 * kFiles, kFiles);
  }
  EXPECT_EQ(files_.asked.at(1), 1);
  EXPECT_EQ(files_.asked.at(2), 1)
      << "a refused table is only read again for a process with more budget";
  EXPECT_GE(budget_->steps.held_by(kHostile), kWholeTable / 4) << "reading is charged";
  EXPECT_LE(budget_->bytes.held_by(kHostile), base::RecordingBudget::kBytes / 5);
  EXPECT_EQ(unwind(kInnocent, 1000).end, EndOfStack::kWhole);
}

// The first process to use a table pays for it; if it cannot, the file stays available to others.
TEST_F(UnwindBudget, LoadsATableForTheNextProcess) {
  files_.files[1] = test::made_elf(test::made_unwind_table("", kFunction));
  map(kHostile, 1);
  map(kInnocent, 1);
  spaces_.complete();
  budget_->bytes.charge(kHostile, budget_->bytes.left(kHostile));
  EXPECT_TRUE(unwind(kHostile, 10).too_large);
  EXPECT_EQ(unwind(kInnocent, 10).end, EndOfStack::kWhole);
}

class ForkedMappings : public UnwindBudget {
 protected:
  static constexpr std::uint64_t kMappings = 29'000;
  static constexpr ProcessNumber kForks = 75;

  // 75 forks of a process with 29,000 mappings; each fork replaces every STRIDE-th mapping.
  void fork_often(std::uint64_t stride) {
    files_.files[1] = test::made_elf(test::made_unwind_table("", kFunction));
    for (std::uint64_t i = 0; i < kMappings; ++i) {
      map(kHostile, 1, i);
    }
    map(kInnocent, 1);
    for (ProcessNumber i = 0; i < kForks; ++i) {
      spaces_.fork(1 + i, kHostile, 1000 + i);
      for (std::uint64_t j = 0; j < kMappings; j += stride) {
        const auto begin = kFile + j * kApart;
        spaces_.map(1 + i, 1000 + i, {.begin = begin, .end = begin + 1, .path = "/more"});
      }
    }
    spaces_.fork(100, kInnocent, kInnocent + 1);
    spaces_.map(101, kInnocent + 1, {.begin = 0x1000, .end = 0x2000, .path = "/more"});
    spaces_.complete();
  }
};

TEST_F(ForkedMappings, CostLittleWhereFewAreReplaced) {
  fork_often(kMappings);
  EXPECT_TRUE(spaces_.emptied().empty());
  EXPECT_LT(budget_->bytes.held_by(kHostile), std::uint64_t{2} << 20U);
  const auto last = kFile + (kMappings - 1) * kApart;
  EXPECT_NE(spaces_.find(1000 + kForks - 1, 200, last), nullptr);
}

TEST_F(ForkedMappings, EmptyOnlyTheFamilyThatReplacesTooMany) {
  fork_often(100);
  EXPECT_EQ(spaces_.family(1000 + kForks - 1), kHostile);
  ASSERT_EQ(spaces_.emptied().size(), 1U);
  EXPECT_GT(spaces_.emptied().at(kHostile), 0U);
  EXPECT_LE(budget_->bytes.held_by(kHostile), base::RecordingBudget::kBytes / 5);
  EXPECT_NE(spaces_.find(kInnocent + 1, 200, kFile), nullptr);
  const auto spent = budget_->bytes.spent();
  spaces_.complete();
  EXPECT_EQ(budget_->bytes.spent(), spent) << "the first call's copies are given back";
}

}  // namespace
}  // namespace pyinject::unwind
