// `demo`: what a new user types first.
#include "procfs/stat.hpp"
#include "support/bpf_engine.hpp"
#include "support/child_process.hpp"
#include "support/covering.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <string>

namespace pyinject::test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

class Demo : public testing::TestWithParam<int> {};
struct NameOfDemo {
  template <typename Info>
  std::string operator()(const Info& info) const {
    return "py3_" + std::to_string(info.param);
  }
};
COVER(Demo, 1);
INSTANTIATE_TEST_SUITE_P(Versions, Demo, testing::Values(12, 13, 14, 15), NameOfDemo{});

TEST_P(Demo, ShowsTheListTheVerdictAndThePageAndEndsItsService) {
  const auto python = plain_interpreter(GetParam());
  if (!python) {
    GTEST_SKIP() << "not installed (scripts/pythons)";
  }
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
    GTEST_SKIP() << lacks;
  }
  const TempDir directory;
  const auto page = (directory / "page.html");
  RunOptions options;
  options.child.env = {{"TMPDIR", directory.path()}};
  const auto shown = run({tool(), "demo", python->command.front(), "-o", page}, options);
  ASSERT_EQ(shown.status, ExitStatus{}) << shown.err;
  EXPECT_THAT(shown.out, AllOf(HasSubstr("\n$ perf-pyinject\n"), HasSubstr("shop.py"),
                               ContainsRegex("\n[$] perf-pyinject why [0-9]+ -d 3\npid [0-9]+: "),
                               ContainsRegex("\n[$] perf-pyinject flamegraph [0-9]+ -d 3 -o ")));
  EXPECT_THAT(shown.err, HasSubstr(" Python functions, with the source of "));
  std::smatch pid;
  ASSERT_TRUE(std::regex_search(shown.out, pid, std::regex{"why ([0-9]+)"}));
  EXPECT_FALSE(procfs::read_stat(base::Pid{std::stoi(pid[1])}));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator{directory.path()},
                          std::filesystem::directory_iterator{}),
            1)
      << "only the page";
}

TEST(DemoTool, SaysWhichPythonItNeeds) {
  const auto none = run({tool(), "demo", "/bin/sh"});
  EXPECT_EQ(none.status, ExitStatus{.code = 125});
  EXPECT_THAT(none.err, HasSubstr("/bin/sh runs no CPython 3.12 or later"));
}

}  // namespace
}  // namespace pyinject::test
