#include "pyinject/targets/status_report.hpp"

#include "support/fake_python.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cerrno>  // program_invocation_name
#include <cstddef>
#include <optional>
#include <string>

#include <unistd.h>

namespace pyinject::targets {
namespace {

using base::Pid;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

TEST(StatusReport, NamedProcessesAreAllListed) {
  test::FakeDetector detector;
  detector.refusals[Pid{7}] = python::Reason::kNotPython;
  const auto report = report_status(detector, {Pid{7}, Pid{8}, Pid{8}});
  ASSERT_EQ(report.processes.size(), 2U);
  EXPECT_EQ(verdict(report.processes[0]), "not_python");
  EXPECT_EQ(verdict(report.processes[1]), "ready");
}

TEST(StatusReport, OthersOnlyWhenTheyArePython) {
  test::FakeDetector detector;
  detector.only.emplace();
  EXPECT_THAT(report_status(detector, {}).processes, IsEmpty());
}

TEST(StatusReport, JsonHasItsSchema) {
  test::FakeDetector detector;
  detector.refusals[Pid{7}] = python::Reason::kPythonTooOld;
  detector.states[Pid{8}] = python::TrampolineState::kOnByItself;
  const auto json = nlohmann::json::parse(to_json(report_status(detector, {Pid{7}, Pid{8}})));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["processes"][0]["reason"], "python_too_old");
  EXPECT_EQ(json["processes"][0]["ready"], false);
  EXPECT_TRUE(json["processes"][0]["version"].is_null());
  EXPECT_TRUE(json["processes"][0]["frame_pointers"].is_null());
  EXPECT_EQ(json["processes"][1]["version"], "3.15.2");
  EXPECT_EQ(json["processes"][1]["frame_pointers"], true);
  EXPECT_EQ(json["processes"][1]["trampoline"], "on by itself");
  EXPECT_TRUE(json["processes"][1]["reason"].is_null());
}

TEST(StatusReport, TellsASessionThatIsGoneFromOneThatRuns) {
  ProcessStatus status;
  status.pid = Pid{7};
  status.trampoline = python::TrampolineState::kOnByUs;
  status.owner = python::OwnerState::kGone;
  const StatusReport gone{.processes = {status}, .unreadable = 0};
  EXPECT_EQ(verdict(status), "on by us (session gone)");
  EXPECT_THAT(to_json(gone), HasSubstr(R"("session": "gone")"));
  EXPECT_THAT(to_table(gone), HasSubstr("deactivate -p 7"));
  status.owner = python::OwnerState::kLives;
  const StatusReport runs{.processes = {status}, .unreadable = 0};
  EXPECT_EQ(verdict(status), "on by us");
  EXPECT_THAT(to_json(runs), HasSubstr(R"("session": "running")"));
  EXPECT_THAT(to_table(runs), testing::Not(HasSubstr("deactivate")));
}

TEST(StatusReport, NamesFromATargetAreMadePrintable) {
  ProcessStatus status;
  status.pid = Pid{7};
  status.interpreter = "/tmp/\x1b[2J\xff/python";
  status.command = "evil\x1b[31m\nsecond line";
  const StatusReport report{.processes = {status}, .unreadable = 3};
  EXPECT_THAT(to_json(report), HasSubstr(R"(/tmp/\\x1b[2J\\xff/python)"));
  EXPECT_THAT(to_table(report), HasSubstr("evil\\x1b[31m\\x0asecond line\n"));
  EXPECT_THAT(to_table(report, {.verbose = true}),
              HasSubstr("pid 7: interpreter: /tmp/\\x1b[2J\\xff/python\n"));
  EXPECT_THAT(to_table(report), HasSubstr("3 processes could not be inspected"));
}

ProcessStatus python_process(int pid) {
  ProcessStatus status;
  status.pid = Pid{pid};
  status.version = python::Version{.major = 3, .minor = 13, .micro = 5, .level = 0xf, .serial = 0};
  status.frame_pointers = false;
  status.trampoline = python::TrampolineState::kOff;
  status.user = "www-data";
  status.command = "python3 app.py";
  return status;
}

ProcessStatus refused_process(int pid, const std::string& found) {
  auto status = python_process(pid);
  status.trampoline = std::nullopt;
  status.refusal = {
      .reason = python::Reason::kPythonTooOld, .found = found, .remedy = "upgrade it"};
  return status;
}

TEST(StatusTable, HasAColumnForEachProperty) {
  auto unknown = refused_process(12345, "it is Python 3.11.2");
  unknown.version = std::nullopt;
  unknown.frame_pointers = std::nullopt;
  unknown.user = "";
  unknown.command = "";
  EXPECT_EQ(to_table({.processes = {python_process(7), unknown}}),
            "  PID  USER      PYTHON  FP  STATE           COMMAND\n"
            "    7  www-data  3.13.5  no  ready           python3 app.py\n"
            "12345  -         -       -   python_too_old  -\n"
            "\n"
            "pid 12345: it is Python 3.11.2 (python_too_old): upgrade it\n");
}

TEST(StatusTable, CutsCommandLinesToTheTerminal) {
  auto status = python_process(7);
  status.command = "python3 " + std::string(100, 'x');
  const auto line_at = [&](std::size_t width) {
    const auto table = to_table({.processes = {status}}, {.width = width});
    const auto begin = table.find('\n') + 1;
    return table.substr(begin, table.find('\n', begin) - begin);
  };
  EXPECT_EQ(line_at(60).size(), 60U);
  EXPECT_TRUE(line_at(60).ends_with("xxx..."));
  EXPECT_EQ(line_at(10), line_at(20)) << "with a minimum width";
  EXPECT_TRUE(line_at(0).ends_with(status.command));
  EXPECT_TRUE(line_at(500).ends_with(status.command));
  status.command = "python3 ";
  for (int i = 0; i < 50; ++i) {
    status.command += "\xc3\xa4";
  }
  EXPECT_TRUE(line_at(60).ends_with("\xc3\xa4...")) << "between characters";
}

TEST(StatusTable, FoldsReasonsIntoOneLineEach) {
  const StatusReport same{.processes = {refused_process(7, "it is Python 3.11.2"),
                                        python_process(8),
                                        refused_process(9, "it is Python 3.11.2")}};
  EXPECT_THAT(to_table(same),
              EndsWith("\n\n2 processes: Python 3.11.2 (python_too_old): upgrade it\n"));
  EXPECT_THAT(to_table(same, {.verbose = true}),
              EndsWith("\n\npid 7: it is Python 3.11.2 (python_too_old): upgrade it\n"
                       "pid 9: it is Python 3.11.2 (python_too_old): upgrade it\n"));
  const StatusReport different{
      .processes = {refused_process(7, "it is Python 3.11.2"), refused_process(9, "it is 3.10")}};
  EXPECT_THAT(to_table(different),
              EndsWith("\n\n2 processes (-v: each), such as pid 7: it is Python 3.11.2 "
                       "(python_too_old): upgrade it\n"));
}

TEST(StatusTable, CountsTheProcessesThatAreNotListed) {
  EXPECT_THAT(to_table({.processes = {}, .unreadable = 1}),
              HasSubstr("\n1 process could not be inspected"));
  EXPECT_THAT(to_table({.processes = {}, .not_examined = 2}),
              HasSubstr("\n2 processes could not be examined"));
}

TEST(StatusReport, KnowsUserAndCommandLine) {
  test::FakeDetector detector;
  const auto report = report_status(detector, {Pid{::getpid()}});
  ASSERT_EQ(report.processes.size(), 1U);
  EXPECT_NE(report.processes[0].user, "");
  EXPECT_THAT(report.processes[0].command, StartsWith(program_invocation_name));
}

TEST(StatusReport, AsksTheObserverOfThoseThatTheTrampolineRefuses) {
  test::FakeDetector detector;
  detector.refusals[Pid{7}] = python::Reason::kJitActive;
  detector.refusals[Pid{8}] = python::Reason::kNoPermission;
  detector.refusals[Pid{9}] = python::Reason::kFreeThreaded;
  test::FakeDetector observer;
  observer.refusals[Pid{9}] = python::Reason::kFreeThreaded;
  const auto report = report_status(detector, {Pid{7}, Pid{8}, Pid{9}, Pid{10}}, &observer);
  ASSERT_EQ(report.processes.size(), 4U);
  EXPECT_EQ(verdict(report.processes[0]), "only --engine bpf");
  EXPECT_EQ(verdict(report.processes[1]), "no_permission");
  EXPECT_EQ(verdict(report.processes[2]), "free_threaded");
  EXPECT_EQ(verdict(report.processes[3]), "ready");
  EXPECT_THAT(to_table(report), HasSubstr("(jit_active)"));
  EXPECT_THAT(to_json(report), HasSubstr(R"("reason": "jit_active")"));
}

}  // namespace
}  // namespace pyinject::targets
