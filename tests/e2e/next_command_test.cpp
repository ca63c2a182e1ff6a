// The command that the summary's "next:" names works as it is, on a machine without binutils as
// well.
#include "support/checked_target.hpp"
#include "support/child_process.hpp"
#include "support/find_perf.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

namespace pyinject::test {
namespace {

using testing::HasSubstr;

// Its first part: perf's command.
std::string next_command(const std::string& messages) {
  constexpr std::string_view kNext = "next: ";
  const auto begin = messages.find(kNext);
  const auto end = messages.find(", or perf-pyinject report", begin);
  return begin == std::string::npos || end == std::string::npos
             ? "false"
             : messages.substr(begin + kNext.size(), end - begin - kNext.size());
}

class NextCommand : public testing::TestWithParam<std::string> {};

TEST_P(NextCommand, WorksWithoutAddr2line) {
  const auto perf = find_perf(GetParam());
  if (!perf) {
    GTEST_SKIP() << "no " << GetParam() << " (scripts/pythons)";
  }
  const TempDir directory;
  std::filesystem::create_directory(directory / "bin");
  RunOptions poor;
  poor.child.env["PATH"] = directory / "bin";
  const CheckedTarget target{newest_interpreter(), Doing::kComputes};
  const auto recorded =
      run({tool(), "record", "--perf", *perf, "-e", "cpu-clock", "-F", "999", "-p",
           target.pid_text(), "-o", directory / "perf.data", "--", "/bin/sleep", "1"},
          poor);
  ASSERT_EQ(recorded.status, ExitStatus{}) << recorded.err;
  const auto next = next_command(recorded.err);
  const auto report = run({"/bin/sh", "-c", next + " --stdio"}, poor);
  EXPECT_EQ(report.status, ExitStatus{}) << next << report.err;
  EXPECT_THAT(report.out, HasSubstr("py::<module>:"));
}

INSTANTIATE_TEST_SUITE_P(Perfs, NextCommand, testing::Values("perf", "perf6.12", "perf7"),
                         [](const auto& one) {
                           auto name = one.param;
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace pyinject::test
