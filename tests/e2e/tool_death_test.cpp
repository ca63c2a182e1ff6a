// The tool is killed, fails, or runs out of a resource at every step. Each time the target
// continues, is right and off, and the next session can use it.
#include "base/fault.hpp"
#include "base/file.hpp"
#include "support/checked_target.hpp"
#include "support/child_process.hpp"
#include "support/covering.hpp"
#include "support/guards.hpp"
#include "support/paths.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include <unistd.h>

namespace pyinject::test {
namespace {

using base::Step;
using testing::HasSubstr;

// The conditions under which a recording reaches a step.
struct Scene {
  Doing doing = Doing::kComputes;
  bool activated_before = false;
  bool old_map = false;
  bool misses_deadline = false;
};

Scene scene_of(Step step) {
  switch (step) {
    case Step::kOldMapMoved:
      return {.old_map = true};
    case Step::kOnOwnerWritten:
    case Step::kOnStored:
      return {.activated_before = true};
    case Step::kFutexWoken:
      return {.doing = Doing::kWaitsForLock};
    case Step::kFramesWritten:
    case Step::kFramesNoted:
    case Step::kFramesStarted:
      return {.doing = Doing::kReads};
    case Step::kSecondLook:
      return {.doing = Doing::kHoldsGil};
    case Step::kPayloadBlanked:
    case Step::kTakenBack:
      return {.doing = Doing::kHoldsGil, .misses_deadline = true};
    default:
      return {};
  }
}

// Steps that do not depend on the target's interpreter.
bool knows_no_python(Step step) {
  static const std::set<Step> steps{
      Step::kSessionBegun, Step::kGuardRuns,   Step::kTargetsChosen,     Step::kPerfRuns,
      Step::kGuardTold,    Step::kOldMapMoved, Step::kEventsEnabled,     Step::kCommandStarted,
      Step::kRecording,    Step::kPerfEnded,   Step::kSideEventsEnabled, Step::kGuardDismissed,
      Step::kWeaveBegun,   Step::kWoven,       Step::kPayloadBlanked,    Step::kTakenBack};
  return steps.contains(step);
}

using Death = std::tuple<Interpreter, Step>;

std::string death_name(const testing::TestParamInfo<Death>& info) {
  return fmt::format("{}_step{:02}", std::get<0>(info.param).name,
                     static_cast<int>(std::get<1>(info.param)));
}

// Each step on each version.
std::vector<Death> deaths() {
  std::vector<Death> result;
  for (int number = 1; number <= static_cast<int>(Step::kLast); ++number) {
    const Step step{number};
    // Only reached by switching off a target whose session was killed at a certain moment.
    if (step == Step::kOffEvaluatorKept) {
      continue;
    }
    auto versions = interpreters({.each_version = Prefer::kChrooted});
    if (step == Step::kMapCopyBegun || step == Step::kMapCopied) {
      std::erase_if(versions, [](const auto& one) { return one.root.empty(); });
    } else if (knows_no_python(step) && !versions.empty()) {
      versions = {versions.back()};
    }
    for (const auto& interpreter : versions) {
      result.emplace_back(interpreter, step);
    }
  }
  return result;
}

// A recording of a target by a tool with a fault injected at a step.
class FaultyRecording {
 protected:
  FaultyRecording(const Interpreter& interpreter, Step step)
      : step_{step}, scene_{scene_of(step)}, target_{interpreter, scene_.doing} {
    if (scene_.activated_before) {
      target_.activate_once();
    }
    if (scene_.old_map) {
      std::ofstream{target_.map_path()} << "1000 10 old\n";
      // Older than any running process.
      std::filesystem::last_write_time(target_.map_path(), std::filesystem::file_time_type::min());
    }
  }

  [[nodiscard]] Step step() const { return step_; }

  RunResult record(std::string_view fault) {
    // Long enough that a target whose map is checked has called a function, even on a busy machine.
    const bool called = step() > Step::kRecording && target_.chrooted();
    const auto* const span = step() == Step::kRecording ? "1" : called ? "0.5" : "0.05";
    RunOptions options;
    options.child.env["PYINJECT_TEST_FAULT"] =
        fmt::format("{}:{}", static_cast<int>(step()), fault);
    options.deadline = std::chrono::seconds{60};
    return run({faulty_tool(), "record", "-e", "cpu-clock", "-F", "99", "-p", target_.pid_text(),
                "-o", directory_ / "perf.data", "--", "sleep", span},
               options);
  }

  Step step_;
  Guards guards_;
  Scene scene_;
  TempDir directory_;
  CheckedTarget target_;
};

class ToolDeath : public FaultyRecording, public testing::TestWithParam<Death> {
 protected:
  ToolDeath() : FaultyRecording{std::get<0>(GetParam()), std::get<1>(GetParam())} {}
};

TEST_P(ToolDeath, LeavesTheTargetUnharmedAndOff) {
  const auto result = record("kill");
  ASSERT_EQ(result.status.signal, SIGKILL) << "the step was not reached: " << result.err;
  guards_.wait_for_orphans({target_.pid()});
  const auto copy = "/tmp/perf-" + target_.pid_text() + ".map";
  if (step() >= Step::kActivated && target_.chrooted()) {
    const auto names = base::read_file(copy);
    EXPECT_EQ(names, base::read_file(target_.map_path()));
    if (step() >= Step::kRecording) {  // before that, it may not have called any function
      EXPECT_THAT(names.value_or("no copy"), HasSubstr("py::"));
    }
    for (const auto& entry : std::filesystem::directory_iterator{"/tmp"}) {
      EXPECT_FALSE(
          entry.path().filename().string().starts_with(".perf-" + target_.pid_text() + "."))
          << entry.path();
    }
  }
  target_.expect_unharmed_and_off();
  target_.expect_usable();
}

class ToolFailure : public ToolDeath {};

TEST_P(ToolFailure, IsUndone) {
  const auto result = record("fail");
  EXPECT_EQ(result.status.signal, 0);
  EXPECT_THAT(result.err, HasSubstr("fault at step"));
  target_.expect_unharmed_and_off();
  target_.expect_usable();
}

// Each step on one version, in rotation: the undo code is the same as for a normal end.
std::vector<Death> failures() {
  std::map<Step, std::vector<Death>> by_step;
  for (const auto& death : deaths()) {
    by_step[std::get<1>(death)].push_back(death);
  }
  std::vector<Death> result;
  for (const auto& [step, all] : by_step) {
    result.push_back(all[result.size() % all.size()]);
  }
  return result;
}

using Shortage = std::tuple<Interpreter, Step, std::string>;

class ToolShortage : public FaultyRecording, public testing::TestWithParam<Shortage> {
 protected:
  ToolShortage() : FaultyRecording{std::get<0>(GetParam()), std::get<1>(GetParam())} {}
};

// Whatever the tool can no longer do, the target is off in the end, and the tool reports success
// only if it is.
TEST_P(ToolShortage, LeavesNoTargetOn) {
  const auto result = record(std::get<2>(GetParam()));
  EXPECT_EQ(result.status.signal, 0) << result.err;
  const bool off = target_.is_off();
  const bool guarded = test::guard_of(base::Pid{::getpid()}).has_value();
  if (result.status.code == 0) {
    EXPECT_TRUE(off && !guarded) << "off: " << off << ": " << result.err;
    EXPECT_THAT(result.err, testing::Not(HasSubstr("error: ")));
  } else {
    EXPECT_THAT(result.status.code, testing::AnyOf(125, 126)) << result.err;
    EXPECT_THAT(result.err, HasSubstr("error: "));
  }
  if (!off) {
    EXPECT_THAT(result.err, HasSubstr("perf-pyinject deactivate -p " + target_.pid_text()));
  }
  guards_.wait_for_orphans({target_.pid()});
  target_.expect_unharmed_and_off();
  target_.expect_usable();
}

// Each step with a failing open(2), whose errors the tool handles alike, and with a failing start
// of threads and processes; versions take turns.
std::vector<Shortage> shortages() {
  static const std::vector<std::string> of_files{"EMFILE", "ENFILE", "ENOMEM", "EIO"};
  std::vector<Shortage> result;
  for (const auto& [interpreter, step] : failures()) {
    for (const auto& error : of_files) {
      result.emplace_back(interpreter, step, error);
    }
    result.emplace_back(interpreter, step, "EAGAIN");
    if (step >= Step::kRecording) {
      result.emplace_back(interpreter, step, "EFBIG");
    }
  }
  return result;
}

std::string shortage_name(const testing::TestParamInfo<Shortage>& info) {
  return fmt::format("{}_step{:02}_{}", std::get<0>(info.param).name,
                     static_cast<int>(std::get<1>(info.param)), std::get<2>(info.param));
}

COVER(ToolShortage, 8);
COVER(ToolDeath, 12);
COVER(ToolFailure, 8);
INSTANTIATE_TEST_SUITE_P(Pythons, ToolShortage, testing::ValuesIn(shortages()), shortage_name);
INSTANTIATE_TEST_SUITE_P(Pythons, ToolDeath, testing::ValuesIn(deaths()), death_name);
INSTANTIATE_TEST_SUITE_P(Pythons, ToolFailure, testing::ValuesIn(failures()), death_name);

}  // namespace
}  // namespace pyinject::test
