// Torture: each kind of program on each version of CPython. Short by default; scripts/stress makes
// it long.
//
//   PYINJECT_STRESS_INJECTIONS=N   injections for each kind and interpreter; default: one life
//   PYINJECT_STRESS_SECONDS=N      or for N seconds
//   PYINJECT_STRESS_RECORDINGS=N   recordings for each; default: one, on one of the interpreters
//   PYINJECT_STRESS_CONTROL=1      also run the programs without the tool
//   PYINJECT_STRESS_PYTHONS=TEXT   interpreters with TEXT in their name; default: one for each
//                                  minor version
//   PYINJECT_STRESS_TABLE=FILE     append a row of a Markdown table to FILE
#include "base/text.hpp"
#include "pyinject/base/deadline.hpp"
#include "stress/kinds.hpp"
#include "stress/torture.hpp"
#include "support/child_process.hpp"
#include "support/covering.hpp"
#include "support/interpreters.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

namespace pyinject::test {
namespace {

constexpr int kInjectionsOfALife = 10;
constexpr int kInjectionsOfAShortRun = 6;
// Stop once there are enough failures to analyze.
constexpr std::size_t kEnoughHarm = 40;

std::string setting(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int number(const char* name, int otherwise) {
  return base::parse_number<int>(setting(name)).value_or(otherwise);
}

// Interpreters that are not chrooted and run by the loader of another Debian are installed by
// scripts/pythons, with modules.
std::vector<Interpreter> chosen_interpreters() {
  const auto wanted = setting("PYINJECT_STRESS_PYTHONS");
  return wanted.empty() ? interpreters({.each_version = Prefer::kLoader})
                        : interpreters({.name_part = wanted, .both_ways = true});
}

using Parameters = std::tuple<Kind, Interpreter>;

bool long_run() {
  return number("PYINJECT_STRESS_INJECTIONS", 0) > 0 || number("PYINJECT_STRESS_SECONDS", 0) > 0;
}

std::vector<Parameters> kinds_and_interpreters() {
  const auto interpreters = chosen_interpreters();
  std::vector<Parameters> all;
  for (const auto& kind : kinds()) {
    for (const auto& one : interpreters) {
      all.emplace_back(kind, one);
    }
  }
  return all;
}

struct KindAndInterpreter {
  std::string operator()(const testing::TestParamInfo<Parameters>& info) const {
    return fmt::format("{}_{}", std::get<Kind>(info.param).name,
                       std::get<Interpreter>(info.param).name);
  }
};

class Stress : public testing::TestWithParam<Parameters> {
 protected:
  static std::string row(const Kind& kind, const Interpreter& interpreter, const Torture& torture) {
    const auto harms = [](const Tally& tally) {
      return fmt::format("{} | {} | {}", tally.count(Harm::kCrash), tally.count(Harm::kHang),
                         tally.count(Harm::kWrong));
    };
    const auto& tally = torture.tally();
    const auto& control = torture.control();
    std::string refused;
    for (const auto& [reason, count] : tally.refused) {
      refused += fmt::format("{}{} {}", refused.empty() ? "" : ", ", count, reason);
    }
    return fmt::format("| {} | {}.{}.{} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
                       kind.name, interpreter.major, interpreter.minor, interpreter.micro,
                       tally.lives, tally.injections, tally.recordings, harms(tally),
                       tally.count(Harm::kToolError), tally.count(Harm::kLeftover), refused,
                       control.lives, harms(control),
                       tally.exit_crashes + control.exit_crashes == 0
                           ? ""
                           : fmt::format("{}, {}", tally.exit_crashes, control.exit_crashes));
  }
};

// The recordings of a short run: one for each kind, versions in rotation.
int recordings_of_a_short_run(const Kind& kind, const Interpreter& interpreter) {
  const auto at = std::ranges::find(kinds(), kind.name, &Kind::name) - kinds().begin();
  return at % 4 == interpreter.minor - 12 ? 1 : 0;
}

TEST_P(Stress, NoTargetIsHarmed) {
  const auto& [kind, interpreter] = GetParam();
  if (!kind.module.empty() && !has_module(interpreter, kind.module)) {
    GTEST_SKIP() << interpreter.name << " has no " << kind.module;
  }
  const int injections = number("PYINJECT_STRESS_INJECTIONS", 0);
  const auto end =
      base::Deadline::after(std::chrono::seconds{number("PYINJECT_STRESS_SECONDS", 0)});
  int recordings = number("PYINJECT_STRESS_RECORDINGS",
                          long_run() ? 0 : recordings_of_a_short_run(kind, interpreter));
  if (kind.care == Care::kEndsItself) {
    recordings = 0;
  }

  Torture torture{kind, interpreter};
  do {
    torture.live(long_run() ? kInjectionsOfALife : kInjectionsOfAShortRun, recordings > 0 ? 1 : 0);
    --recordings;
  } while ((torture.tally().attempts() < injections || !end.expired()) &&
           torture.tally().notes.size() < kEnoughHarm);
  for (int i = 0; i < torture.tally().lives && !setting("PYINJECT_STRESS_CONTROL").empty(); ++i) {
    torture.live_without_tool();
  }

  const auto text = row(kind, interpreter, torture);
  if (const auto table = setting("PYINJECT_STRESS_TABLE"); !table.empty()) {
    std::ofstream{table, std::ios::app} << text;
  }
  EXPECT_TRUE(torture.tally().harms.empty()) << text;
  for (const auto& note : torture.tally().notes) {
    ADD_FAILURE() << note;
  }
  for (const auto& note : torture.control().notes) {
    fmt::print("without the tool: {}\n", note);
  }
}

COVER(Stress, 6);
INSTANTIATE_TEST_SUITE_P(Pythons, Stress, testing::ValuesIn(kinds_and_interpreters()),
                         KindAndInterpreter{});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Stress);

}  // namespace
}  // namespace pyinject::test
