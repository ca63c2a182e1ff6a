// Names of functions that are gone, and whose memory is reused, by the time they could be read.
#include "base/text.hpp"
#include "e2e/bpf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/statistics.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace pyinject::test {
namespace {

constexpr std::string_view kDigits = "abcd";

constexpr std::string_view kUnresolved = "[unknown]";

// The number in "a_7"; nullopt: not one of the permanent functions.
std::optional<long> digit_of(const std::string& function) {
  if (function.size() < 3 || function[1] != '_' ||
      kDigits.find(function[0]) == std::string_view::npos) {
    return std::nullopt;
  }
  return base::parse_number<long>(std::string_view{function}.substr(2));
}

// The names in one stack, from `live` inwards.
struct Told {
  std::map<char, long> digits;       // of the permanent functions
  std::vector<std::string> outside;  // the others, "NAME:FILE": outside the last digit,
  std::vector<std::string> inside;   // and inside it
  [[nodiscard]] bool complete() const { return digits.size() == kDigits.size(); }
  // The number that the digits encode; requires complete().
  [[nodiscard]] long truth() const {
    long sum = 0;
    for (auto name = kDigits.rbegin(); name != kDigits.rend(); ++name) {
      sum = 10 * sum + digits.at(*name);
    }
    return sum;
  }
  // The others must be f_N, then g_N or nothing; a name may be unresolved, but never a different
  // one.
  [[nodiscard]] bool right() const {
    const auto is = [this](const auto& names, char kind) {
      return names.size() == 1 && (names.front() == fmt::format("{0}_{1}:{1}", kind, truth()) ||
                                   names.front() == kUnresolved);
    };
    return is(outside, 'f') && (inside.empty() || is(inside, 'g'));
  }
  [[nodiscard]] bool unresolved() const {
    return std::ranges::count(outside, kUnresolved) + std::ranges::count(inside, kUnresolved) > 0;
  }
};

Told told_by(const ScriptedSample& sample) {
  Told told;
  bool alive = false;
  for (auto frame = sample.frames.rbegin(); frame != sample.frames.rend(); ++frame) {
    const auto function = frame->python() ? frame->function() : "";
    if (const auto digit = digit_of(function)) {
      told.digits[function[0]] = *digit;
    } else if (alive && !function.empty()) {
      auto& place = told.complete() ? told.inside : told.outside;
      place.push_back(frame->file().empty() ? function : function + ":" + frame->file());
    }
    alive = alive || function == "live";
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
  const TempDir directory;
  RunningRecord running{
      bpf_record(std::to_string(target.pid().value()), directory / "data", "1999")};
  target.send_line("3000");
  const auto lived = target.read_line(kPatience);
  ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  std::size_t judged = 0;
  std::size_t misnamed = 0;
  std::size_t unresolved = 0;
  std::string wrong;
  for (const auto& sample : samples_without_kernel_names(directory / "data")) {
    const auto told = told_by(sample);
    if (!told.complete()) {
      continue;  // it compiles, or the call is not that deep yet
    }
    ++judged;
    unresolved += told.unresolved() ? 1 : 0;
    if (!told.right()) {
      ++misnamed;
      wrong = fmt::format("{}: {} {}\n", told.truth(), told.outside, told.inside);
    }
  }
  EXPECT_GE(judged, 1500U) << running.child().err();
  EXPECT_EQ(misnamed, 0U) << wrong << running.child().err();
  EXPECT_TRUE(share_is_at_most({.count = unresolved, .all = judged}, 0.005))
      << running.child().err();
  RecordProperty("judged", std::to_string(judged));
  RecordProperty("unresolved", std::to_string(unresolved));
  RecordProperty("lived_us", lived);
}

INSTANTIATE_TEST_SUITE_P(Pythons, BpfShortLives, testing::ValuesIn(all_builds()), BuildName{});

// Checks the check: a name of the previous function or module is wrong, an unresolved one is not.
TEST(ShortFunctions, AreToldFromEachOther) {
  ScriptedSample sample;
  for (const auto* const symbol :
       {"py::g_1203:1203", "py::d_1:<string>", "py::c_2:<string>", "py::b_0:<string>",
        "py::a_3:<string>", "py::f_1203:1203", "py::live:<string>", "py::<module>:<string>"}) {
    sample.frames.push_back({.symbol = symbol});
  }
  ASSERT_TRUE(told_by(sample).complete());
  EXPECT_EQ(told_by(sample).truth(), 1203);
  for (auto* const frame : {&sample.frames.at(0), &sample.frames.at(5)}) {
    const auto name = frame->symbol;
    EXPECT_TRUE(told_by(sample).right());
    EXPECT_FALSE(told_by(sample).unresolved());
    frame->symbol = "py::[unknown]";
    EXPECT_TRUE(told_by(sample).right());
    EXPECT_TRUE(told_by(sample).unresolved());
    for (const auto* const wrong : {"py::g_1202:1202", "py::f_1202:1202", "py::g_1203:1202",
                                    "py::f_1203:1202", "py::<module>:1203", "py::live:<string>"}) {
      frame->symbol = wrong;
      EXPECT_FALSE(told_by(sample).right()) << wrong;
    }
    frame->symbol = name;
  }
  sample.frames.erase(sample.frames.begin());
  EXPECT_TRUE(told_by(sample).right()) << "d_1 has not called it yet";
  sample.frames.erase(sample.frames.begin() + 4);
  EXPECT_FALSE(told_by(sample).right()) << "f_1203 is missing";
}

}  // namespace
}  // namespace pyinject::test
