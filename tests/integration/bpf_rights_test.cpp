// The rights that the BPF engine needs, and what happens without them.
#include "integration/rights.hpp"
#include "support/bpf_engine.hpp"
#include "support/paths.hpp"
#include "support/sanitizers.hpp"
#include "support/untouched.hpp"

#include <gmock/gmock.h>

namespace pyinject::test {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class BpfRights : public Rights {
 protected:
  void SetUp() override {
    if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
    Rights::SetUp();
  }
  [[nodiscard]] static std::vector<std::string> engine(const std::string& name) {
    return {"--engine", name, "-e", "cpu-clock"};
  }
};

TEST_F(BpfRights, OnesOwnProcessTakesBpfAndPerfmon) {
  start(kUser, kBusy);
  const auto recorded = record("+bpf,+perfmon", engine("bpf"));
  EXPECT_EQ(recorded.status, ExitStatus{}) << recorded.err;
  EXPECT_GE(times_in(script(""), "py::leaf"), 5U) << recorded.err;
  EXPECT_THAT(recorded.err, Not(HasSubstr("trampoline on")));
  expect_private(data(), kUser);
}

TEST_F(BpfRights, RefusalNamesTheMissingCapability) {
  start(kUser);
  const Untouched before{python_->pid()};
  for (const auto* const capabilities : {"", "+perfmon", "+bpf"}) {
    const auto refused = record(capabilities, engine("bpf"));
    EXPECT_EQ(refused.status, (ExitStatus{.code = 125})) << capabilities;
    EXPECT_THAT(refused.err, AllOf(HasSubstr("(no_rights)"),
                                   AnyOf(HasSubstr("CAP_BPF"), HasSubstr("CAP_PERFMON"))))
        << capabilities;
  }
  EXPECT_THAT(before.differences(), IsEmpty());
}

TEST_F(BpfRights, TopTakesBpfAndPerfmonForOnesOwnProcess) {
  start(kUser, kBusy);
  const auto pid = std::to_string(python_->pid().value());
  const std::vector<std::string> top{"top", "--once", "--json", "-d", "2", "-p", pid};
  const auto shown = pyinject("+bpf,+perfmon", top);
  EXPECT_EQ(shown.status, ExitStatus{}) << shown.err;
  EXPECT_THAT(shown.out, AllOf(HasSubstr("\"source\": \"bpf\""), HasSubstr("\"leaf\"")));
  EXPECT_EQ(shown.err, "");
}

TEST_F(BpfRights, TopReadsFromOutsideAndNamesTheMissingCapability) {
  start(kUser, kBusy);
  const auto pid = std::to_string(python_->pid().value());
  for (const auto* const capabilities : {"", "+perfmon", "+bpf"}) {
    const auto shown = pyinject(capabilities, {"top", "--once", "--json", "-d", "2", "-p", pid});
    EXPECT_EQ(shown.status, ExitStatus{}) << shown.err;
    EXPECT_THAT(shown.out, AllOf(HasSubstr("\"source\": \"reading\""), HasSubstr("\"leaf\"")))
        << capabilities;
    EXPECT_THAT(shown.err, AllOf(HasSubstr("CAP_PERFMON"), HasSubstr("read from outside")))
        << capabilities;
  }
  python_->expect_alive();
}

TEST_F(BpfRights, TopReportsThatItHasNoPermission) {
  start(kOther);
  const auto refused =
      pyinject("", {"top", "--once", "-d", "1", "-p", std::to_string(python_->pid().value())});
  EXPECT_EQ(refused.status, (ExitStatus{.code = 125}));
  EXPECT_THAT(refused.err, HasSubstr("(no_permission)"));
}

class WhyRights : public BpfRights {};

TEST_F(WhyRights, AreBpfAndPerfmonForOnesOwnProcess) {
  start(kUser, kBusy);
  const auto pid = std::to_string(python_->pid().value());
  const auto shown = pyinject("+bpf,+perfmon", {"why", "-p", pid, "-d", "1"});
  EXPECT_EQ(shown.status, ExitStatus{}) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("CPU: C function"));
}

TEST_F(WhyRights, NamesTheMissingCapability) {
  start(kUser);
  const auto pid = std::to_string(python_->pid().value());
  const Untouched before{python_->pid()};
  for (const auto* const capabilities : {"", "+perfmon", "+bpf"}) {
    const auto refused = pyinject(capabilities, {"why", "-p", pid, "-d", "1"});
    EXPECT_EQ(refused.status, (ExitStatus{.code = 125})) << capabilities;
    EXPECT_THAT(refused.err, AllOf(HasSubstr("(no_rights)"), HasSubstr("perf-pyinject dump -p")))
        << capabilities;
  }
  EXPECT_THAT(before.differences(), IsEmpty());
}

TEST_F(BpfRights, TooFewDescriptorsAreNoOldKernel) {
  if (kUndefinedBehaviorSanitizer) {
    GTEST_SKIP() << "UndefinedBehaviorSanitizer needs descriptors itself";
  }
  start(kUser);
  const auto refused =
      run({"sh", "-c", "ulimit -n 8; exec \"$@\"", "sh", tool(), "record", "--engine", "bpf", "-p",
           std::to_string(python_->pid().value()), "-o", data(), "--", "true"});
  EXPECT_EQ(refused.status, (ExitStatus{.code = 125}));
  EXPECT_THAT(refused.err, AllOf(HasSubstr("(no_descriptors)"), HasSubstr("ulimit -n")));
}

TEST_F(BpfRights, TheChoiceIsTheTrampolineWithoutThem) {
  start(kUser, kBusy);
  const auto recorded = record("+perfmon", engine("auto"));
  EXPECT_EQ(recorded.status, ExitStatus{}) << recorded.err;
  EXPECT_THAT(recorded.err, AllOf(HasSubstr("trampoline on, stopped"), HasSubstr("(no_rights)")));
  EXPECT_THAT(script(""), HasSubstr("py::leaf"));
}

TEST_F(BpfRights, TheChoiceIsThisEngineWithThem) {
  start(kUser, kBusy);
  const auto recorded = record("+bpf,+perfmon", engine("auto"));
  EXPECT_EQ(recorded.status, ExitStatus{}) << recorded.err;
  EXPECT_THAT(recorded.err, Not(HasSubstr("trampoline on, stopped")));
  EXPECT_THAT(script(""), HasSubstr("py::leaf"));
}

TEST_F(BpfRights, AnothersProcessTakesSysPtraceToo) {
  start(kOther, kBusy);
  const auto refused = record("+bpf,+perfmon", engine("bpf"));
  EXPECT_EQ(refused.status, (ExitStatus{.code = 125}));
  EXPECT_THAT(refused.err, AllOf(HasSubstr("(no_permission)"), HasSubstr("CAP_SYS_PTRACE")));
  const auto recorded = record("+bpf,+perfmon,+sys_ptrace", engine("bpf"));
  EXPECT_EQ(recorded.status, ExitStatus{}) << recorded.err;
  EXPECT_GE(times_in(script(""), "py::leaf"), 5U) << recorded.err;
}

}  // namespace
}  // namespace pyinject::test
