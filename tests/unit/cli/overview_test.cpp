#include "cli/overview.hpp"

#include "cli/command_line.hpp"
#include "cli/verb.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace pyinject::cli {
namespace {

using base::Pid;
using targets::StatusReport;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

targets::ProcessStatus process(pid_t pid, const std::string& command) {
  targets::ProcessStatus status;
  status.pid = Pid{pid};
  status.version = python::Version{.major = 3, .minor = 13, .micro = 5};
  status.user = "web";
  status.command = command;
  return status;
}

TEST(Overview, ListsTheBusiestFirst) {
  const StatusReport report{
      .processes = {process(4, "idle"), process(71, "busy"), process(9, "new")}};
  EXPECT_EQ(to_overview(report, {{Pid{4}, 0.004}, {Pid{71}, 1.93}}, 0),
            "PID  USER  %CPU  PYTHON  COMMAND\n"
            " 71  web    193  3.13.5  busy\n"
            "  4  web      0  3.13.5  idle\n"
            "  9  web      -  3.13.5  new\n"
            "\n"
            "why it is slow        perf-pyinject why -p 71\n"
            "what it is busy with  perf-pyinject top -p 71\n"
            "where it is now       perf-pyinject dump -p 71\n"
            "a picture             perf-pyinject flamegraph -p 71 -d 10 -o flamegraph.html\n"
            "a recording           perf-pyinject record -p 71 --engine auto -- sleep 10\n"
            "what can be recorded  perf-pyinject status\n");
}

TEST(Overview, NamesAProcessThatCanBeRecorded) {
  const python::Refusal refusal{python::Reason::kPythonTooOld, "it is too old", ""};
  auto old = process(4, "old");
  old.refusal = refusal;
  auto jit = process(5, "jit");
  jit.refusal = refusal;
  jit.only_bpf = true;
  const CpuShares shares{{Pid{4}, 0.9}, {Pid{5}, 0.1}};
  EXPECT_THAT(to_overview({.processes = {old, jit}}, shares, 0),
              HasSubstr("record -p 5 --engine auto -- sleep 10"));
  EXPECT_THAT(to_overview({.processes = {old}}, shares, 0), HasSubstr("record -p PID "));
}

TEST(Overview, IsAScreenForAnyNumberOfProcesses) {
  StatusReport report;
  for (pid_t pid = 1; pid <= 500; ++pid) {
    report.processes.push_back(process(pid, std::string(200, 'x')));
  }
  const auto text = to_overview(report, {}, 80);
  EXPECT_THAT(text, HasSubstr("and 482 more: perf-pyinject status\n"));
  EXPECT_LE(std::ranges::count(text, '\n'), 27);
  std::size_t begin = 0;
  for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    EXPECT_LE(end - begin, 80U) << text.substr(begin, end - begin);
    begin = end + 1;
  }
}

TEST(Overview, EscapesNames) {
  EXPECT_THAT(to_overview({.processes = {process(1, "a\x1b[31m")}}, {}, 0),
              HasSubstr("a\\x1b[31m\n"));
}

TEST(Overview, SaysThatNoPythonRuns) {
  EXPECT_THAT(to_overview({}, {}, 80), StartsWith("no Python process is visible\n"));
}

TEST(Overview, IsTheAnswerToNoArguments) {
  EXPECT_EQ(parse_command_line({}, {}).verb->name, "overview");
  EXPECT_THROW((void)parse_command_line({"overview"}, {}), CommandLineError);
}

}  // namespace
}  // namespace pyinject::cli
