// `record -a`: every Python process of a machine, also those that start and end meanwhile.
#include "pyinject/base/text.hpp"
#include "support/child_process.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <set>

#include <unistd.h>

namespace pyinject::test {
namespace {

using testing::IsEmpty;

// PYINJECT_CROWD: so many of each kind from the beginning, and twice as many during the recording.
int crowd() {
  const char* const value = std::getenv("PYINJECT_CROWD");
  return value == nullptr ? 14 : std::atoi(value);
}

// A /tmp of its own, FOLDER ($0), in which nobody's maps are; what is tested may lie in there ($1,
// $2).
constexpr auto kOwnTmp = R"(
for needed in "$1" "$2"; do
  case $needed in /tmp/*)
    mkdir -p "$0/${needed#/tmp/}" && mount --bind "$needed" "$0/${needed#/tmp/}" ;;
  esac
done
shift 2
mount --rbind "$0" /tmp && cd / && exec "$@")";

// The functions that perf names in the samples of DATA.
std::set<std::string> names_in(const std::string& data) {
  const auto script = run({"perf", "script", "-i", data, "-F", "ip,sym"},
                          {.child = {}, .input = {}, .deadline = std::chrono::minutes{2}});
  std::set<std::string> names;
  for (const auto line : base::split(script.out, '\n')) {
    if (const auto at = line.find("py::"); at != std::string_view::npos) {
      const auto name = line.substr(at + 4);
      names.emplace(name.substr(0, name.find(':')));
    }
  }
  return names;
}

TEST(WholeMachine, HasTheNamesOfAllItsPythonsAndHarmsNone) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "a pid namespace of its own takes root";
  }
  std::vector<std::string> interpreters;
  for (const auto& interpreter : all_interpreters()) {
    interpreters.push_back(fmt::format("{}", fmt::join(interpreter.command, " ")));
  }
  ASSERT_FALSE(interpreters.empty());
  // What is mounted over its /tmp is ours to look into.
  const TempDir folder;
  std::vector<std::string> command{"unshare",
                                   "-mpf",
                                   "--mount-proc",
                                   "--kill-child",
                                   "sh",
                                   "-c",
                                   kOwnTmp,
                                   folder.path(),
                                   source_dir(),
                                   build_dir(),
                                   "/usr/bin/python3",
                                   source_dir() + "/tests/targets/crowd.py",
                                   tool(),
                                   "/tmp/data",
                                   std::to_string(crowd()),
                                   std::to_string(2 * crowd())};
  command.insert(command.end(), interpreters.begin(), interpreters.end());
  const auto result = run(command, {.child = {}, .input = {}, .deadline = std::chrono::minutes{5}});
  ASSERT_EQ(result.status, ExitStatus{}) << result.err;
  const auto told = nlohmann::json::parse(result.out);
  const auto messages = told["messages"].get<std::string>();
  EXPECT_EQ(told["status"], 0) << messages;
  EXPECT_EQ(told["harmed"].dump(), "[]") << messages;
  EXPECT_EQ(told["active"].dump(), "[]") << messages;
  EXPECT_GE(told["seen"], crowd());
  const auto names = names_in(folder / "data");
  std::vector<std::string> missing;
  for (const auto& name : told["names"]) {
    if (!names.contains(name.get<std::string>())) {
      missing.push_back(name.get<std::string>());
    }
  }
  EXPECT_THAT(missing, IsEmpty()) << messages;
}

}  // namespace
}  // namespace pyinject::test
