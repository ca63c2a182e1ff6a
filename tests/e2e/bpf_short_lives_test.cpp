// Names of functions that are gone when somebody could look for them, and whose memory has others
// in it by then.
#include "e2e/bpf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "pyinject/base/file.hpp"
#include "pyinject/base/text.hpp"
#include "support/paths.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace pyinject::test {
namespace {

constexpr std::string_view kDigits = "abcd";

// The number in "f_123"; nullopt: it is no function of that kind.
std::optional<long> number_of(const std::string& function, std::string_view kind) {
  if (function.size() < 3 || function[1] != '_' ||
      kind.find(function[0]) == std::string_view::npos) {
    return std::nullopt;
  }
  return base::parse_number<long>(std::string_view{function}.substr(2));
}

// What the names of one stack say.
struct Told {
  std::set<long> numbers;       // of f_N, g_N and their files
  std::map<char, long> digits;  // of those that live for ever
  [[nodiscard]] bool complete() const { return digits.size() == kDigits.size(); }
  // What the digits say; they are complete.
  [[nodiscard]] long truth() const {
    long sum = 0;
    for (auto name = kDigits.rbegin(); name != kDigits.rend(); ++name) {
      sum = 10 * sum + digits.at(*name);
    }
    return sum;
  }
};

Told told_by(const ScriptedSample& sample) {
  Told told;
  for (const auto& frame : sample.frames) {
    const auto function = frame.python() ? frame.function() : "";
    if (const auto number = number_of(function, "fg")) {
      told.numbers.insert(*number);
      told.numbers.insert(base::parse_number<long>(frame.file()).value_or(-1));
    } else if (const auto digit = number_of(function, kDigits)) {
      told.digits[function[0]] = *digit;
    }
  }
  return told;
}

class BpfShortLives : public testing::TestWithParam<Build> {};

TEST_P(BpfShortLives, NoneIsMisnamed) {
  const auto python = find_build(GetParam());
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty() || !python) {
    GTEST_SKIP() << lacks << " or no " << name(GetParam()) << " (scripts/pythons)";
  }
  PythonOptions options;
  options.child = environment_of(GetParam());
  PythonProcess target{*python, target_source("short_functions.py"), options};
  const TempDir folder;
  RunningRecord running{bpf_record(std::to_string(target.pid().value()), folder / "data", "1999")};
  target.send_line("1500");
  const auto lived = target.read_line(std::chrono::seconds{60});
  ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  std::size_t judged = 0;
  std::size_t misnamed = 0;
  std::size_t unresolved = 0;
  std::string wrong;
  for (const auto& sample : scripted_samples(folder / "data")) {
    const auto told = told_by(sample);
    if (!told.complete()) {
      continue;  // it compiles, or is on its way
    }
    ++judged;
    unresolved += told.numbers.empty() ? 1 : 0;
    if (!told.numbers.empty() && told.numbers != std::set{told.truth()}) {
      ++misnamed;
      wrong = fmt::format("{}: {}\n", told.truth(), testing::PrintToString(sample.chain()));
    }
  }
  EXPECT_GE(judged, 1500U) << running.child().err();
  EXPECT_EQ(misnamed, 0U) << wrong << running.child().err();
  EXPECT_LE(unresolved * 200, judged) << running.child().err();
  RecordProperty("judged", std::to_string(judged));
  RecordProperty("unresolved", std::to_string(unresolved));
  RecordProperty("lived_us", lived);
}

INSTANTIATE_TEST_SUITE_P(Builds, BpfShortLives, testing::ValuesIn(all_builds()), BuildName{});

// That a wrong name would be seen: each function has the number of the one before it.
TEST(ShortFunctions, AreToldFromEachOther) {
  ScriptedSample sample;
  for (const auto* const symbol :
       {"py::g_1203:1203", "py::d_1:<string>", "py::c_2:<string>", "py::b_0:<string>",
        "py::a_3:<string>", "py::f_1203:1203", "py::live:<string>", "py::<module>:<string>"}) {
    sample.frames.push_back({.symbol = symbol});
  }
  ASSERT_TRUE(told_by(sample).complete());
  EXPECT_EQ(told_by(sample).truth(), 1203);
  EXPECT_EQ(told_by(sample).numbers, std::set<long>{1203});
  sample.frames.front().symbol = "py::g_1202:1202";
  EXPECT_EQ(told_by(sample).numbers, (std::set<long>{1202, 1203}));
  sample.frames.front().symbol = "py::g_1203:1202";
  EXPECT_EQ(told_by(sample).numbers, (std::set<long>{1202, 1203}));
}

}  // namespace
}  // namespace pyinject::test
