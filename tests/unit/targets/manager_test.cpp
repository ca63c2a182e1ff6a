#include "pyinject/targets/manager.hpp"

#include "pyinject/base/child.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"
#include "support/child_process.hpp"
#include "support/fake_python.hpp"
#include "support/patience.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <iterator>
#include <system_error>
#include <thread>

namespace pyinject::targets {
namespace {

using base::Pid;
using python::Reason;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Pid kFirst{5'000'001};  // beyond the pid_max of these tests: never a process
constexpr Pid kSecond{5'000'002};
constexpr Pid kThird{5'000'003};

class ManagerTest : public testing::Test {
 protected:
  std::unique_ptr<Manager> make(ManagerOptions options = {}) {
    options.owner = {.session = {.pid = Pid{1}, .start_time = 1}};
    return make_manager(detector_, injector_, logger_, options);
  }

  test::FakeDetector detector_;
  test::FakeInjector injector_;
  test::RecordingLogger logger_;
};

TEST_F(ManagerTest, SwitchesOffWhatItSwitchedOn) {
  const auto manager = make();
  auto selection = manager->select({kFirst, kSecond});
  ASSERT_TRUE(selection.complete);
  EXPECT_TRUE(manager->activate_all(std::move(selection.targets)));
  EXPECT_EQ(injector_.on.size(), 2U);
  EXPECT_TRUE(manager->deactivate_all());
  EXPECT_THAT(injector_.on, IsEmpty());
  EXPECT_EQ(manager->stats().activated, 2U);
  EXPECT_EQ(manager->stats().deactivated, 2U);
}

TEST_F(ManagerTest, StrictUndoesAllAfterOneFailure) {
  injector_.activate_refusals[kThird] = Reason::kDeadline;
  const auto manager = make();
  EXPECT_FALSE(manager->activate_all(manager->select({kFirst, kSecond, kThird}).targets));
  EXPECT_THAT(injector_.on, IsEmpty());
  EXPECT_EQ(manager->stats().activate_failed, 1U);
  EXPECT_EQ(manager->stats().of(Reason::kDeadline), 1U);
  EXPECT_EQ(logger_.text(base::LogLevel::kError), "pid 5000003: the test says so (deadline)\n");
}

TEST_F(ManagerTest, AppliesStrictOnlyToTheGivenPidsOfFamilies) {
  injector_.activate_refusals[kThird] = Reason::kExited;
  detector_.refusals[kFirst] = Reason::kNotPython;
  const auto manager = make({.families = true});
  auto selection = manager->select({kFirst, kSecond});
  EXPECT_TRUE(selection.complete) << "a shell leads to its Pythons";
  auto targets = std::move(selection.targets);
  std::ranges::move(manager->select({kThird}, false).targets, std::back_inserter(targets));
  EXPECT_TRUE(manager->activate_all(std::move(targets)));
  EXPECT_EQ(manager->stats().activated, 1U);
  EXPECT_EQ(manager->stats().of(Reason::kExited), 1U);
  EXPECT_EQ(logger_.text(base::LogLevel::kError), "");
  EXPECT_EQ(logger_.text(base::LogLevel::kWarning), "");
  injector_.activate_refusals[kSecond] = Reason::kExited;
  EXPECT_FALSE(manager->activate_all(manager->select({kSecond}).targets));
}

TEST_F(ManagerTest, LenientGoesOnAndCounts) {
  detector_.refusals[kFirst] = Reason::kNotPython;
  detector_.refusals[kSecond] = Reason::kPythonTooOld;
  const auto manager = make({.strict = false});
  auto selection = manager->select({kFirst, kSecond, kThird}, false);
  EXPECT_FALSE(selection.complete);
  EXPECT_TRUE(manager->activate_all(std::move(selection.targets)));
  EXPECT_THAT(injector_.calls, ElementsAre("activate 5000003"));
  EXPECT_EQ(manager->stats().skipped_not_python, 1U);
  EXPECT_EQ(manager->stats().skipped_too_old, 1U);
  EXPECT_EQ(manager->stats().summary(),
            "1 process recorded, 2 skipped (1 not_python, 1 python_too_old)");
  EXPECT_EQ(logger_.text(base::LogLevel::kWarning),
            "pid 5000002: the test says so (python_too_old)\n");
}

TEST_F(ManagerTest, LeavesOnWhatWasOnBefore) {
  detector_.states[kFirst] = python::TrampolineState::kOnByItself;
  detector_.states[kSecond] = python::TrampolineState::kOnByUs;
  const auto manager = make();
  EXPECT_TRUE(manager->activate_all(manager->select({kFirst, kSecond}).targets));
  EXPECT_TRUE(manager->deactivate_all());
  EXPECT_THAT(injector_.calls, ElementsAre("activate 5000001", "activate 5000002"));
}

TEST_F(ManagerTest, ToleratesProcessesThatExitOrFinalize) {
  injector_.deactivate_refusals[kFirst] = Reason::kExited;
  injector_.deactivate_refusals[kSecond] = Reason::kFinalizing;
  const auto manager = make();
  EXPECT_TRUE(manager->activate_all(manager->select({kFirst, kSecond}).targets));
  EXPECT_TRUE(manager->deactivate_all());
  EXPECT_EQ(manager->stats().deactivate_failed, 0U);
}

TEST_F(ManagerTest, SaysWhatIsStillOn) {
  injector_.deactivate_refusals[kFirst] = Reason::kStopDeadline;
  const auto manager = make();
  EXPECT_TRUE(manager->activate_all(manager->select({kFirst, kSecond}).targets));
  EXPECT_FALSE(manager->deactivate_all());
  EXPECT_EQ(manager->stats().deactivate_failed, 1U);
  EXPECT_FALSE(injector_.on.contains(kSecond)) << "one failure must not affect the others";
  EXPECT_THAT(logger_.text(base::LogLevel::kError),
              HasSubstr("it may still be on: perf-pyinject deactivate -p 5000001"));
}

TEST_F(ManagerTest, AShortageIsNoEndOfTheProcess) {
  const auto manager = make();
  ASSERT_TRUE(manager->activate_all(manager->select({kFirst, kSecond}).targets));
  injector_.after_deactivation = [](Pid pid) {
    if (pid == kFirst) {
      throw std::system_error{std::make_error_code(std::errc::resource_unavailable_try_again)};
    }
  };
  EXPECT_FALSE(manager->deactivate_all());
  EXPECT_THAT(injector_.calls, Contains("deactivate 5000002"));
  EXPECT_THAT(logger_.text(base::LogLevel::kError),
              HasSubstr("perf-pyinject deactivate -p 5000001"));
  EXPECT_FALSE(manager->deactivate_all()) << "it may still be on";
}

TEST_F(ManagerTest, AnActivationThatThrowsIsSwitchedOffUntilThatSucceeds) {
  injector_.after_activation = [](Pid) { throw base::Error{"no memory"}; };
  injector_.deactivate_refusals[kFirst] = Reason::kStopDeadline;
  const auto manager = make({.strict = false});
  EXPECT_TRUE(manager->activate_all(manager->select({kFirst}, false).targets));
  injector_.deactivate_refusals.clear();
  EXPECT_TRUE(manager->deactivate_all());
  EXPECT_THAT(injector_.on, IsEmpty());
  EXPECT_THAT(injector_.calls,
              ElementsAre("activate 5000001", "deactivate 5000001", "deactivate 5000001"));
}

TEST_F(ManagerTest, SharesTheTimeOfSwitchingOff) {
  const auto manager = make({.deactivation_deadline = std::chrono::seconds{400}});
  EXPECT_TRUE(manager->activate_all(manager->select({kFirst, kSecond}).targets));
  EXPECT_TRUE(manager->deactivate_all());
  ASSERT_EQ(injector_.shares.size(), 2U);
  EXPECT_LE(injector_.shares[0], std::chrono::seconds{200});
  EXPECT_GT(injector_.shares[1], std::chrono::seconds{200}) << "what the first did not need";
}

TEST_F(ManagerTest, InterruptionShortensSwitchingOffButSkipsNothing) {
  bool interrupted = false;
  ManagerOptions options;
  options.interrupted = [&] { return std::exchange(interrupted, false); };
  const auto manager = make(options);
  EXPECT_TRUE(manager->activate_all(manager->select({kFirst, kSecond}).targets));
  interrupted = true;
  EXPECT_TRUE(manager->deactivate_all());
  EXPECT_THAT(injector_.on, IsEmpty());
  EXPECT_EQ(injector_.shares[1], std::chrono::milliseconds{100});
}

TEST_F(ManagerTest, InterruptionDuringActivationUndoesIt) {
  int asked = 0;
  ManagerOptions options;
  options.interrupted = [&] { return ++asked == 2; };
  const auto manager = make(options);
  EXPECT_FALSE(manager->activate_all(manager->select({kFirst, kSecond}).targets));
  EXPECT_THAT(injector_.on, IsEmpty());
}

// A listener that opens the maps of all targets does this.
TEST_F(ManagerTest, ListenersMayAskTheManager) {
  std::vector<std::size_t> active;
  std::unique_ptr<Manager> manager;
  ManagerOptions options;
  options.before_activation = [&](const python::Target& /*target*/) {
    active.push_back(manager->active().size());
  };
  options.on_event = [&](const Event& event) {
    if (event.kind == EventKind::kActivated) {
      active.push_back(manager->active().size());
    }
  };
  manager = make(options);
  manager->on_activation(
      [&](const ActiveTarget& /*target*/) { active.push_back(manager->active().size()); });
  EXPECT_TRUE(manager->activate_all(manager->select({kFirst, kSecond}).targets));
  EXPECT_THAT(active, ElementsAre(0U, 1U, 1U, 1U, 2U, 2U));
}

// A listener that opens the ELF files of a target is slow.
TEST_F(ManagerTest, ForgetsDuringTheListenersCallForAnotherTarget) {
  const base::Child slow{{.argv = {"sleep", "60"}}};
  const base::Child other{{.argv = {"sleep", "60"}}};
  std::promise<void> called;
  std::promise<void> other_forgotten;
  const auto manager = make();
  manager->on_activation([&](const ActiveTarget& active) {
    if (active.target.id.pid == slow.pid()) {
      called.set_value();
      EXPECT_EQ(other_forgotten.get_future().wait_for(test::kPatience), std::future_status::ready);
    }
  });
  ASSERT_EQ(manager->activate_late(other.pid()).late, Late::kActive);
  const std::jthread activating{[&] { (void)manager->activate_late(slow.pid()); }};
  ASSERT_EQ(called.get_future().wait_for(test::kPatience), std::future_status::ready);
  EXPECT_NE(manager->forget(other.pid()), nullptr);
  EXPECT_EQ(manager->forget(kFirst), nullptr) << "never active";
  other_forgotten.set_value();
}

TEST_F(ManagerTest, ForgetWaitsForTheListenersCallForItsTarget) {
  const base::Child child{{.argv = {"sleep", "60"}}};
  std::promise<void> called;
  std::promise<void> forgetting;
  std::atomic<bool> returned = false;
  const auto manager = make();
  manager->on_activation([&](const ActiveTarget& active) {
    called.set_value();
    EXPECT_EQ(forgetting.get_future().wait_for(test::kPatience), std::future_status::ready);
    EXPECT_EQ(manager->active().size(), 1U) << "not forgotten meanwhile";
    returned = active.target.id.pid == child.pid();
  });
  const std::jthread activating{[&] { (void)manager->activate_late(child.pid()); }};
  ASSERT_EQ(called.get_future().wait_for(test::kPatience), std::future_status::ready);
  forgetting.set_value();
  EXPECT_NE(manager->forget(child.pid()), nullptr);
  EXPECT_TRUE(returned);
}

TEST_F(ManagerTest, DoesNotAnnounceAForgottenTarget) {
  std::unique_ptr<Manager> manager;
  ManagerOptions options;
  options.on_event = [&](const Event& event) {
    if (event.kind == EventKind::kActivated && event.pid == kFirst) {
      EXPECT_NE(manager->forget(kFirst), nullptr);
    }
  };
  manager = make(options);
  std::vector<Pid> announced;
  manager->on_activation(
      [&](const ActiveTarget& active) { announced.push_back(active.target.id.pid); });
  EXPECT_TRUE(manager->activate_all(manager->select({kFirst, kSecond}).targets));
  EXPECT_THAT(announced, ElementsAre(kSecond));
}

// Targets taken by a handler other than the injector are released as well.
TEST_F(ManagerTest, TakesAndReleasesByAnyHandler) {
  class Handler : public TargetHandler {
   public:
    std::variant<python::Activation, python::Refusal> attach(
        const python::Target& target, const python::ActivateOptions& /*options*/) override {
      calls.emplace_back("take", target.id.pid.value());
      return python::Activation{};
    }
    std::variant<python::Deactivation, python::Refusal> release(
        const python::Target& target, const python::DeactivateOptions& /*options*/) override {
      calls.emplace_back("release", target.id.pid.value());
      return python::Deactivation{};
    }
    std::vector<std::pair<std::string, int>> calls;
  };
  Handler handler;
  const auto manager = make_manager(detector_, handler, logger_, {});
  EXPECT_TRUE(manager->activate_all(manager->select({kFirst}).targets));
  EXPECT_TRUE(manager->deactivate_all());
  EXPECT_THAT(handler.calls,
              ElementsAre(std::pair{"take", 5'000'001}, std::pair{"release", 5'000'001}));
}

TEST_F(ManagerTest, DestructorIsTheSafetyNet) {
  {
    const auto manager = make();
    manager->on_activation([](const ActiveTarget&) { throw std::runtime_error{"listener"}; });
    EXPECT_THROW((void)manager->activate_all(manager->select({kFirst}).targets),
                 std::runtime_error);
    EXPECT_EQ(injector_.on.size(), 1U);
  }
  EXPECT_THAT(injector_.on, IsEmpty());
}

TEST_F(ManagerTest, LeavesTargetsOnIfItHasNoOwner) {
  {
    const auto manager = make_manager(detector_, injector_, logger_, {});
    EXPECT_TRUE(manager->activate_all(manager->select({kFirst}).targets));
  }
  EXPECT_EQ(injector_.on.size(), 1U);
}

TEST_F(ManagerTest, TriesLateArrivalsOnce) {
  const base::Child child{{.argv = {"sleep", "60"}}};
  const auto manager = make();
  detector_.refusals[child.pid()] = Reason::kNotInitialized;
  EXPECT_EQ(manager->activate_late(child.pid()).late, Late::kNotYet);
  EXPECT_THAT(injector_.calls, IsEmpty());
  detector_.refusals.clear();
  EXPECT_EQ(manager->activate_late(child.pid()).late, Late::kActive);
  EXPECT_EQ(manager->activate_late(child.pid()).late, Late::kKnown);
  EXPECT_EQ(manager->activate_late(Pid{5'000'009}).late, Late::kGone);
  EXPECT_EQ(injector_.calls.size(), 1U);
}

// While its program is being mapped, a process can look as if it had exited.
TEST_F(ManagerTest, RetriesAProcessThatOnlyLooksExited) {
  const base::Child child{{.argv = {"sleep", "60"}}};
  const auto manager = make();
  detector_.refusals[child.pid()] = Reason::kExited;
  EXPECT_EQ(manager->activate_late(child.pid()).late, Late::kNotYet);
  detector_.refusals.clear();
  EXPECT_EQ(manager->activate_late(child.pid()).late, Late::kActive);
}

// Between its exec and the mapping of its interpreter, no Python is visible.
TEST_F(ManagerTest, RetriesAProcessThatIsNoPythonYet) {
  const base::Child child{{.argv = {"sleep", "60"}}};
  const auto manager = make();
  detector_.refusals[child.pid()] = Reason::kNotPython;
  EXPECT_EQ(manager->activate_late(child.pid()).late, Late::kRefused);
  detector_.refusals.clear();
  EXPECT_EQ(manager->activate_late(child.pid()).late, Late::kActive);
}

// The stack that identifies its program changes until the kernel has finished the exec.
TEST_F(ManagerTest, RetriesAProcessThatExecsDuringItsActivation) {
  const base::Child child{{.argv = {"sleep", "60"}}};
  const auto manager = make();
  injector_.activate_refusals[child.pid()] = Reason::kExited;
  EXPECT_EQ(manager->activate_late(child.pid()).late, Late::kNotYet);
  EXPECT_EQ(manager->stats().of(Reason::kExited), 0U);
  injector_.activate_refusals.clear();
  EXPECT_EQ(manager->activate_late(child.pid()).late, Late::kActive);
  injector_.activate_refusals[kFirst] = Reason::kExited;
  EXPECT_FALSE(manager->activate_all(manager->select({kFirst}).targets)) << "the process is gone";
}

TEST_F(ManagerTest, ActivatesLateWhatWasNoPythonAtTheStart) {
  const base::Child child{{.argv = {"sleep", "60"}}};
  const auto manager = make();
  for (const auto reason : {Reason::kNotPython, Reason::kExited, Reason::kNotInitialized}) {
    detector_.refusals[child.pid()] = reason;
    const auto selection = manager->select({child.pid()}, false);
    EXPECT_THAT(selection.targets, IsEmpty());
    EXPECT_EQ(selection.no_pythons.contains(child.pid()), reason == Reason::kNotPython);
    detector_.refusals.clear();
    EXPECT_EQ(manager->activate_late(child.pid()).late, Late::kActive);
    (void)manager->forget(child.pid());
  }
}

// The record of an exec may be lost.
TEST_F(ManagerTest, DetectsAnExecWithoutARecord) {
  test::ChildProcess child{{"sh", "-c", "echo ready; read word; exec sleep 60"}};
  const auto deadline = base::Deadline::after(test::kPatience);
  ASSERT_EQ(child.read_line(deadline), "ready");
  const auto manager = make();
  detector_.refusals[child.pid()] = Reason::kSeccomp;
  EXPECT_EQ(manager->activate_late(child.pid()).late, Late::kRefused);
  EXPECT_EQ(manager->activate_late(child.pid()).late, Late::kKnown);
  detector_.refusals.clear();
  child.write("\n");
  while (manager->activate_late(child.pid()).late == Late::kKnown && !deadline.expired()) {
  }
  EXPECT_EQ(manager->activate_late(child.pid()).late, Late::kDifferentProgram);
  EXPECT_THAT(injector_.calls, IsEmpty());
  (void)manager->forget(child.pid());
  EXPECT_EQ(manager->activate_late(child.pid()).late, Late::kActive);
}

TEST_F(ManagerTest, CountsProcessesThatExitEarly) {
  const auto manager = make({.strict = false});
  manager->missed(kFirst);
  EXPECT_EQ(manager->stats().summary(), "0 processes recorded, 1 skipped (1 exited)");
  EXPECT_EQ(logger_.text(base::LogLevel::kWarning), "");
}

TEST_F(ManagerTest, TriesAFinalRefusalOnce) {
  const base::Child child{{.argv = {"sleep", "60"}}};
  const auto manager = make();
  detector_.refusals[child.pid()] = Reason::kSeccomp;
  EXPECT_EQ(manager->activate_late(child.pid()).late, Late::kRefused);
  detector_.refusals.clear();
  EXPECT_EQ(manager->activate_late(child.pid()).late, Late::kKnown);
  EXPECT_THAT(injector_.calls, IsEmpty());
}

TEST_F(ManagerTest, ALaterProcessOfTheSameNumberIsANewOne) {
  const base::Child child{{.argv = {"sleep", "60"}}};
  const auto manager = make();
  EXPECT_EQ(manager->activate_late(child.pid()).late, Late::kActive);
  ASSERT_NE(manager->forget(child.pid()), nullptr);
  EXPECT_EQ(manager->forget(child.pid()), nullptr);
  EXPECT_THAT(manager->active(), IsEmpty());
  EXPECT_EQ(manager->activate_late(child.pid()).late, Late::kActive);
}

TEST_F(ManagerTest, AChildThatInheritedItIsNotTouched) {
  const base::Child child{{.argv = {"sleep", "60"}}};
  const auto manager = make();
  detector_.states[child.pid()] = python::TrampolineState::kOnByUs;
  detector_.owners[child.pid()] = {.pid = Pid{1}, .start_time = 1};
  const auto arrival = manager->activate_late(child.pid());
  EXPECT_EQ(arrival.late, Late::kInherited);
  ASSERT_TRUE(arrival.inherited.has_value());
  EXPECT_EQ(arrival.inherited->id.pid, child.pid());
  EXPECT_THAT(injector_.calls, IsEmpty());
}

TEST_F(ManagerTest, NoneIsBegunWhenLateActivationsHaveEnded) {
  const base::Child child{{.argv = {"sleep", "60"}}};
  const auto manager = make();
  manager->end_late_activations();
  EXPECT_EQ(manager->activate_late(child.pid()).late, Late::kRefused);
  EXPECT_THAT(injector_.calls, IsEmpty());
}

TEST_F(ManagerTest, TellsEachStep) {
  detector_.refusals[kSecond] = Reason::kPythonTooOld;
  injector_.activate_refusals[kThird] = Reason::kDeadline;
  std::vector<std::tuple<EventKind, Pid, std::optional<Reason>>> events;
  ManagerOptions options{.strict = false};
  options.on_event = [&](const Event& event) {
    events.emplace_back(event.kind, event.pid, event.reason);
  };
  const auto manager = make(options);
  auto selection = manager->select({kFirst, kSecond}, false);
  EXPECT_TRUE(manager->activate_all(std::move(selection.targets)));
  EXPECT_TRUE(manager->activate_all(manager->select({kThird}, false).targets));
  EXPECT_TRUE(manager->deactivate_all());
  using Row = decltype(events)::value_type;
  EXPECT_THAT(events, ElementsAre(Row{EventKind::kDetected, kFirst, std::nullopt},
                                  Row{EventKind::kSkipped, kSecond, Reason::kPythonTooOld},
                                  Row{EventKind::kActivated, kFirst, std::nullopt},
                                  Row{EventKind::kDetected, kThird, std::nullopt},
                                  Row{EventKind::kFailed, kThird, Reason::kDeadline},
                                  Row{EventKind::kDeactivated, kFirst, std::nullopt}));
}

}  // namespace
}  // namespace pyinject::targets
