#include "pyinject/targets/status_report.hpp"

#include "support/fake_python.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

namespace pyinject::session {
namespace {

using base::Pid;
using testing::HasSubstr;
using testing::IsEmpty;

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
  const StatusReport report{.processes = {status}, .unreadable = 3};
  EXPECT_THAT(to_json(report), HasSubstr(R"(/tmp/\\x1b[2J\\xff/python)"));
  EXPECT_THAT(to_table(report), HasSubstr("/tmp/\\x1b[2J\\xff/python"));
  EXPECT_THAT(to_table(report), HasSubstr("3 processes could not be inspected"));
}

}  // namespace
}  // namespace pyinject::session
