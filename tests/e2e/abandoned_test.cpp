// Targets of a session that was killed together with its guard.
#include "e2e/isolated_machine.hpp"
#include "e2e/served_tree.hpp"
#include "support/interpreters.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

namespace pyinject::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(Abandoned, AreReportedAndSwitchedOffAndNoOthersAre) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "a pid namespace of its own takes root";
  }
  const auto python = plain_interpreter(15);
  if (!python) {
    GTEST_SKIP() << "no CPython 3.15 (scripts/pythons)";
  }
  const TempDir directory;
  const auto told =
      run_apart(directory, "abandoned.py", {fmt::format("{}", fmt::join(python->command, " "))});
  EXPECT_EQ(told["before"], json::parse(R"([["on by us", "gone"], ["on by us", "running"],
                                            ["on by us", "none"]])"));
  EXPECT_THAT(told["table"].get<std::string>(), HasSubstr("on by us (session gone)"));
  EXPECT_THAT(told["table"].get<std::string>(), HasSubstr("perf-pyinject deactivate -p"));
  EXPECT_EQ(told["status"], 0) << told["messages"];
  EXPECT_EQ(told["after"], json::parse(R"([["off", null], ["on by us", "running"],
                                           ["on by us", "none"]])"));
  EXPECT_EQ(told["session"], 0);
  EXPECT_EQ(told["ends"], json::parse("[0, 0, 0]"));
}

}  // namespace
}  // namespace pyinject::test
