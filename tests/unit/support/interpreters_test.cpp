#include "support/interpreters.hpp"

#include "pyinject/base/error.hpp"
#include "support/interpreter_candidates.hpp"
#include "support/python_process.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>

#include <sys/stat.h>

namespace pyinject::test {
namespace {

TEST(Interpreters, NoneOfTheRequiredIsMissing) {
  std::set<int> missing;
  for (const auto& version : required_versions()) {
    if (std::ranges::none_of(interpreters(), [&](const auto& one) {
          return one.is(version.first, version.second);
        })) {
      missing.insert(version.second);
    }
  }
  // No suite of Debian has 3.12.
  const std::set<int> not_in_debian{12};
  const auto text = fmt::format("no CPython 3.{}", fmt::join(missing, ", 3."));
  if (std::getenv("PYINJECT_REQUIRE_PYTHONS") != nullptr) {
    EXPECT_THAT(missing, testing::AnyOf(testing::IsEmpty(), not_in_debian)) << text;
  }
  if (!missing.empty()) {
    GTEST_SKIP() << text;
  }
}

TEST(Interpreters, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const auto& one : interpreters({.both_ways = true})) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_THAT(one.name, testing::MatchesRegex("[a-z0-9_]+"));
    EXPECT_GE(one.minor, 12) << one.name;
  }
}

TEST(InterpreterCandidates, BeginWithThoseThatAreGiven) {
  const TempDir directory;
  const auto first = directory.file("python3", "#!/bin/sh\n");
  const auto second = directory.file("python3.12", "#!/bin/sh\n");
  for (const auto& path : {first, second}) {
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  }
  const char* const before = std::getenv("PYINJECT_TEST_PYTHONS");
  const std::string restored = before == nullptr ? "" : before;
  ASSERT_EQ(::setenv("PYINJECT_TEST_PYTHONS", (first + ":" + second).c_str(), 1), 0);
  const auto candidates = interpreter_candidates();
  ASSERT_EQ(::setenv("PYINJECT_TEST_PYTHONS", restored.c_str(), 1), 0);
  ASSERT_GE(candidates.size(), 2U);
  EXPECT_EQ(candidates[0].path, first);
  EXPECT_EQ(candidates[1].path, second);
  EXPECT_EQ(candidates[0].label, "given");
}

class PythonProcessTest : public testing::TestWithParam<Interpreter> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PythonProcessTest);
INSTANTIATE_TEST_SUITE_P(Pythons, PythonProcessTest,
                         testing::ValuesIn(interpreters({.both_ways = true})), InterpreterName{});

TEST_P(PythonProcessTest, IsTheChildItself) {
  PythonOptions options;
  options.args = {"first"};
  PythonProcess python{GetParam(),
                       "import os, sys\n"
                       "print('ready', flush=True)\n"
                       "print(os.getpid(), sys.argv[1], *sys.version_info[:2], flush=True)\n"
                       "print(sys.stdin.readline().strip(), flush=True)\n"
                       "sys.stdin.readline()\n",
                       options};
  EXPECT_EQ(python.read_line(), std::to_string(python.pid().value()) + " first " +
                                    std::to_string(GetParam().major) + " " +
                                    std::to_string(GetParam().minor));
  python.send_line("hello");
  EXPECT_EQ(python.read_line(), "hello");
  python.expect_alive();
  EXPECT_EQ(python.terminate().signal, 15);
}

TEST_P(PythonProcessTest, TellsWhatWentWrong) {
  try {
    const PythonProcess python{GetParam(), "raise ValueError('just so')"};
    FAIL() << "it started";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("just so"));
  }
}

}  // namespace
}  // namespace pyinject::test
