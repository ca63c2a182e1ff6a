#include "weave/perf_maps.hpp"

#include "support/made_perf_data.hpp"
#include "weave/synthetic_names.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace pyinject::weave {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

TEST(ParsePerfMap, SortedAndTheLastLineHolds) {
  const auto symbols = parse_perf_map(
      "3000 10 late\n"
      "1000 b py::old:a.py\n"
      "2000 20 C++ name with blanks\n"
      "1000 f py::new:b.py\n");
  ASSERT_THAT(symbols, SizeIs(3));
  EXPECT_EQ(symbols[0].start, 0x1000U);
  EXPECT_EQ(symbols[0].size, 0xfU);
  EXPECT_EQ(symbols[0].name, "py::new:b.py");
  EXPECT_TRUE(symbols[0].trampoline);
  EXPECT_EQ(symbols[1].name, "C++ name with blanks");
  EXPECT_FALSE(symbols[1].trampoline);
  EXPECT_EQ(symbols[2].start, 0x3000U);
}

TEST(ParsePerfMap, PassesOverWhatIsNoLine) {
  EXPECT_THAT(parse_perf_map(""), IsEmpty());
  EXPECT_THAT(parse_perf_map("\n\n\n"), IsEmpty());
  EXPECT_THAT(parse_perf_map("no line\n1000\n1000 10\n 1000 10\n"), IsEmpty());
  EXPECT_THAT(parse_perf_map("1000 0 empty\n"), IsEmpty());
  EXPECT_THAT(parse_perf_map("1000 10 without a newline"), SizeIs(1));
  EXPECT_THAT(parse_perf_map(std::string_view{"1000 10 a\0b\n2000 1 c\n", 21}), SizeIs(2));
}

base::UniqueFd readable(const std::string& text) {
  auto file = test::memory_file(text);
  EXPECT_EQ(::lseek(file.get(), 0, SEEK_SET), 0);
  return file;
}

class PerfMapsTest : public testing::Test {
 protected:
  [[nodiscard]] std::string name_at(unwind::ProcessNumber pid, std::uint64_t address) const {
    const auto* const symbol = maps_.symbol(pid, address);
    return symbol == nullptr ? "" : std::string{symbol->name};
  }
  unwind::AddressSpaces spaces_;
  std::map<unwind::ProcessNumber, std::string> texts_;
  std::map<unwind::ProcessNumber, int> opened_;
  PerfMaps maps_{spaces_, [this](unwind::ProcessNumber pid) {
                   ++opened_[pid];
                   const auto found = texts_.find(pid);
                   return found == texts_.end() ? base::UniqueFd{} : readable(found->second);
                 }};
};

TEST_F(PerfMapsTest, FindsWhatCoversAnAddress) {
  texts_[1] = "1000 b py::f:a.py\n2000 b gcc_helper\n";
  EXPECT_EQ(name_at(1, 0xfff), "");
  EXPECT_EQ(name_at(1, 0x1000), "py::f:a.py");
  EXPECT_EQ(name_at(1, 0x100a), "py::f:a.py");
  EXPECT_EQ(name_at(1, 0x100b), "");
  EXPECT_EQ(name_at(1, ~std::uint64_t{0}), "");
  const auto trampoline = maps_.find(1, 0x1005);
  ASSERT_TRUE(trampoline);
  EXPECT_EQ(trampoline->begin, 0x1000U);
  EXPECT_EQ(trampoline->size, 11U);
  EXPECT_FALSE(maps_.find(1, 0x2005)) << "not a name of CPython's";
  ASSERT_NE(maps_.trampoline(1, "py::f:a.py"), nullptr);
  EXPECT_EQ(maps_.trampoline(1, "py::f:a.py")->start, 0x1000U);
  EXPECT_EQ(maps_.trampoline(1, "gcc_helper"), nullptr);
  EXPECT_EQ(opened_[1], 1);
}

TEST_F(PerfMapsTest, FindsNothingIfThereIsNoMap) {
  EXPECT_EQ(name_at(1, 0x1000), "");
  EXPECT_THAT(maps_.of(1), IsEmpty());
  EXPECT_EQ(maps_.trampoline(1, "x"), nullptr);
  EXPECT_EQ(opened_[1], 1) << "opened once";
}

// An unreadable file counts as no map.
TEST_F(PerfMapsTest, TakesAnUnreadableFileForNoMap) {
  PerfMaps maps{spaces_, [](unwind::ProcessNumber) {
                  return base::UniqueFd{::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
                }};
  EXPECT_THAT(maps.of(1), IsEmpty());
}

TEST_F(PerfMapsTest, AChildHasItsParentsNamesToo) {
  spaces_.fork(10, 1, 2);
  spaces_.fork(20, 2, 3);
  spaces_.complete();
  texts_[1] = "1000 b py::parent:a.py\n2000 b py::both:a.py\n";
  texts_[3] = "2000 b py::own:a.py\n3000 b py::child:a.py\n";
  EXPECT_EQ(name_at(3, 0x1000), "py::parent:a.py");
  EXPECT_EQ(name_at(3, 0x2000), "py::own:a.py");
  EXPECT_EQ(name_at(3, 0x3000), "py::child:a.py");
  EXPECT_EQ(name_at(2, 0x1000), "py::parent:a.py");
  EXPECT_EQ(name_at(2, 0x3000), "");
  EXPECT_EQ(name_at(1, 0x3000), "");
}

TEST_F(PerfMapsTest, TellsWhichNamesWereHit) {
  spaces_.fork(10, 1, 2);
  spaces_.complete();
  texts_[1] = "1000 b py::parent:a.py\n2000 b py::both:a.py\n3000 b py::never:a.py\n";
  texts_[2] = "2000 b py::own:a.py\n";
  for (const std::uint64_t address : {0x1005U, 0x2005U, 0x5000U}) {
    maps_.mark_hit(2, address);
  }
  ASSERT_THAT(maps_.hit(1), SizeIs(2));
  EXPECT_EQ(maps_.hit(1)[0].name, "py::parent:a.py");
  EXPECT_EQ(maps_.hit(1)[1].name, "py::both:a.py") << "perf chooses between the two";
  EXPECT_THAT(maps_.hit(2), SizeIs(1));
}

// A map of 120 MB: its process gets only the start of it, its neighbor all of its own.
TEST_F(PerfMapsTest, AMapTakesNoMoreThanTheShareOfItsProcess) {
  constexpr std::size_t kLines = 2'000'000;
  std::string& text = texts_[1];
  text.reserve(60 * kLines);
  for (std::size_t i = 0; i < kLines; ++i) {
    text += fmt::format("{:x} 10 {}\n", 0x1000 + 16 * i, std::string(40, 'x'));
  }
  texts_[2] = "1000 b py::f:a.py\n";
  const auto budget = std::make_shared<base::RecordingBudget>();
  PerfMaps maps{spaces_, [this](unwind::ProcessNumber pid) { return readable(texts_.at(pid)); },
                budget};
  EXPECT_GT(maps.of(1).size(), 100'000U);
  EXPECT_LT(maps.of(1).size(), 500'000U);
  EXPECT_LE(budget->bytes.held_by(1), base::RecordingBudget::kBytes / 5);
  EXPECT_EQ(maps.cut().size(), 1U);
  EXPECT_EQ(maps.cut().at(1), maps.of(1).size());
  EXPECT_THAT(maps.of(2), SizeIs(1));
}

TEST_F(PerfMapsTest, ForkCyclesEnd) {
  spaces_.fork(10, 1, 2);
  spaces_.fork(20, 2, 1);
  spaces_.complete();
  texts_[1] = "1000 b py::f:a.py\n";
  EXPECT_EQ(name_at(2, 0x1000), "py::f:a.py");
  EXPECT_EQ(name_at(2, 0x5000), "");
}

TEST(SyntheticNames, TheSameNameHasTheSameAddress) {
  SyntheticNames names{0x4000'0000'0000};
  const auto first = names.address("py::f:a.py");
  const auto second = names.address("py::g:a.py");
  EXPECT_NE(first, second);
  EXPECT_EQ(names.address("py::f:a.py"), first);
  EXPECT_THAT(names.symbols(), SizeIs(2));
  const auto range = names.range();
  EXPECT_EQ(range.end - range.begin, SyntheticNames::kSize);
  for (const auto& symbol : names.symbols()) {
    const auto address = names.address(symbol.name);
    EXPECT_GT(address, symbol.address) << "one byte before it is still the same symbol";
    EXPECT_LT(address, symbol.address + symbol.size);
    EXPECT_GE(symbol.address, range.begin);
    EXPECT_LE(symbol.address + symbol.size, range.end);
  }
}

}  // namespace
}  // namespace pyinject::weave
