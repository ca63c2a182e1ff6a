// Compiled tables say the same as the rows that they were compiled from.
#include "elf/unwind_table.hpp"

#include "base/budget.hpp"
#include "elf/eh_frame.hpp"
#include "elf/vdso.hpp"
#include "procfs/maps.hpp"
#include "procfs/open_mapped.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <variant>

#include <fcntl.h>
#include <unistd.h>

namespace pyinject::elf {
namespace {

using Place = SavedRegister::Place;

UnwindTableLimits no_limits() {
  return {.bytes = base::Allowance{}, .steps = base::Allowance{}, .new_rules = base::Allowance{}};
}

// Whether RULE says what ROW says.
void expect_same(const unwind_rule& rule, const UnwindRow& row, std::uint64_t pc) {
  SCOPED_TRACE(pc);
  const auto& return_address = row.registers[kReturnAddress];
  switch (rule.kind) {
    case UNWIND_SIGNAL:
      EXPECT_TRUE(row.signal_frame);
      return;
    case UNWIND_END:
      EXPECT_EQ(return_address.place, Place::kLost);
      return;
    case UNWIND_RA_IN_REG:
      EXPECT_EQ(return_address.place, Place::kInRegister);
      EXPECT_EQ(return_address.offset, rule.addend);
      return;
    case UNWIND_PLT:
    case UNWIND_CFA_AT:
      EXPECT_FALSE(row.cfa_register);
      break;
    default:
      if (row.cfa_register) {
        EXPECT_EQ(row.cfa_register, rule.base);
        EXPECT_EQ(row.cfa_offset, rule.offset);
      }
  }
  EXPECT_EQ(return_address.place, Place::kAtCfa);
  EXPECT_EQ(return_address.offset, -8);
  constexpr std::array<std::size_t, UNWIND_SAVED> kSaved{kFramePointer, 3, 12, 13, 14, 15};
  for (std::size_t i = 0; i < kSaved.size(); ++i) {
    const auto& saved = row.registers[kSaved[i]];
    if (saved.place == Place::kAtCfa) {
      EXPECT_EQ(saved.offset, -8 * std::int64_t{rule.saved[i]});
    } else if (saved.place == Place::kUnchanged) {
      EXPECT_EQ(rule.saved[i], 0);
    }
  }
}

struct Compared {
  std::size_t same = 0;
  std::size_t inexpressible = 0;
};

// At the begin and the end of each function, and at some places between.
Compared compare(const ElfFile& file) {
  UnwindRules rules;
  auto limits = no_limits();
  const auto table = compile_unwind_table(file, rules, limits);
  base::Allowance memory;
  const auto frame = EhFrame::of(file, memory);
  EXPECT_TRUE(table && frame);
  Compared result;
  if (!table || !frame) {
    return result;
  }
  for (const auto& function : frame->functions()) {
    for (const std::uint64_t part : {0U, 1U, 4U, 16U, 33U, 50U, 99U}) {
      const base::ElfAddress pc{function.begin.value() + function.size * part / 100};
      base::Allowance steps;
      const auto row = frame->row_at(pc, steps);
      if (!row || frame->function_at(pc) != &function) {
        continue;
      }
      const auto number = table->rule_at(pc);
      if (number == 0) {
        ++result.inexpressible;
      } else {
        expect_same(rules.all()[number], *row, pc.value());
        ++result.same;
      }
      if (testing::Test::HasFailure()) {
        return result;
      }
    }
  }
  return result;
}

TEST(UnwindTable, SaysWhatTheRowsSayForAllFilesOfThisProcess) {
  std::set<std::string> seen;
  const auto maps = procfs::read_maps(base::Pid{::getpid()});
  ASSERT_TRUE(maps);
  for (const auto& mapping : *maps) {
    if (!mapping.executable || !mapping.path.starts_with('/') ||
        !seen.insert(mapping.path).second) {
      continue;
    }
    SCOPED_TRACE(mapping.path);
    auto opened = procfs::open_mapped_file(base::Pid{::getpid()}, mapping);
    ASSERT_TRUE(std::holds_alternative<base::UniqueFd>(opened));
    const auto file = ElfFile::open(std::get<base::UniqueFd>(std::move(opened)));
    ASSERT_TRUE(std::holds_alternative<ElfFile>(file));
    const auto compared = compare(std::get<ElfFile>(file));
    EXPECT_GT(compared.same, 50U);
    EXPECT_LE(compared.inexpressible, compared.same / 1000);
  }
  EXPECT_GE(seen.size(), 5U);
}

TEST(UnwindTable, SaysWhatTheRowsOfTheVdsoSay) {
  const auto file = ElfFile::open(copy_of_vdso());
  ASSERT_TRUE(std::holds_alternative<ElfFile>(file));
  const auto compared = compare(std::get<ElfFile>(file));
  EXPECT_GT(compared.same, 5U);
}

class UnwindTableLimited : public testing::Test {
 protected:
  UnwindTableLimited()
      : opened_{ElfFile::open(base::UniqueFd{::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)})},
        file_{std::get<ElfFile>(opened_)} {}
  std::variant<ElfFile, NotElf> opened_;
  ElfFile& file_;
  UnwindRules rules_;
};

TEST_F(UnwindTableLimited, TakesNoMoreThanItMay) {
  auto bytes = no_limits();
  bytes.bytes = base::Allowance{1000};
  EXPECT_FALSE(compile_unwind_table(file_, rules_, bytes));
  auto steps = no_limits();
  steps.steps = base::Allowance{1000};
  EXPECT_FALSE(compile_unwind_table(file_, rules_, steps));
}

TEST_F(UnwindTableLimited, KeepsKnownRulesIfNoNewOnesAreAllowed) {
  auto few = no_limits();
  few.new_rules = base::Allowance{5};
  const auto table = compile_unwind_table(file_, rules_, few);
  ASSERT_TRUE(table);
  EXPECT_EQ(rules_.all().size(), 6U);
  // Known: the later ones of another file cost nothing.
  auto none = no_limits();
  none.new_rules = base::Allowance{0};
  const auto again = compile_unwind_table(file_, rules_, none);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->rows, table->rows);
}

}  // namespace
}  // namespace pyinject::elf
