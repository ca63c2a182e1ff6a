// The order of a recording's steps, and the switch from one engine to another: with real perf and
// an engine that does nothing.
#include "pyinject/base/child.hpp"
#include "record/choose_engine.hpp"
#include "support/fake_engine.hpp"
#include "support/fake_python.hpp"
#include "support/stand_in_perf.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

namespace pyinject::record {
namespace {

using base::LogLevel;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class CountingObserver : public RecordObserver {
 public:
  void activated(const targets::ActiveTarget& /*target*/) override { ++activations; }
  void progress(std::chrono::nanoseconds /*elapsed*/,
                std::optional<std::uint64_t> /*bytes*/) override {}
  void post_processing(double /*done*/, std::uint64_t /*samples*/) override {}
  void stopped() override {}
  void finished(const RecordSummary& /*summary*/) override { ++summaries; }

  int activations = 0;
  int summaries = 0;
};

class RecordingSteps : public testing::Test {
 protected:
  RecordingSteps() {
    detector_.only = std::set<base::Pid>{target_.pid()};
    plan_.targets = Processes{{target_.pid()}};
    plan_.command = {"true"};
    plan_.maps.folder = directory_.path().string();
    plan_.perf_options = perf::PerfOptions{{"-e", "cpu-clock:u", "-o", data()}};
  }

  [[nodiscard]] OpenEngine opens(test::EngineScript& script) {
    return [this, &script] { return make(script); };
  }
  [[nodiscard]] std::unique_ptr<Engine> make(test::EngineScript& script) {
    return std::make_unique<test::FakeEngine>(script, detector_, injector_, observer_);
  }
  int record(test::EngineScript& script) {
    targets::StopSwitch never;
    return record_with(
               plan_, {}, [&] { return make(script); }, logger_, never)
        .status;
  }
  int record_with_fallback(const OpenEngine& preferred) {
    targets::StopSwitch never;
    return record_with(
               plan_, preferred, [this] { return make(other_); }, logger_, never)
        .status;
  }
  [[nodiscard]] std::string data() const { return directory_ / "perf.data"; }

  base::Child target_{{.argv = {"sh", "-c", "while :; do :; done"}, .death_signal = SIGKILL}};
  test::TempDir directory_;
  test::FakeDetector detector_;
  test::FakeInjector injector_;
  test::RecordingLogger logger_;
  CountingObserver observer_;
  RecordPlan plan_;
  test::EngineScript other_;
};

TEST_F(RecordingSteps, TargetsAreActivatedWhenPerfRuns) {
  test::EngineScript script;
  EXPECT_EQ(record(script), 0);
  EXPECT_THAT(script.calls, ElementsAre("begin", "choose_call_graph", "attach", "before_activation",
                                        "activated", "events_disabled", "switch_off", "add_to",
                                        "summarize", "switch_off", "dismiss"));
  EXPECT_EQ(observer_.activations, 1);
  EXPECT_EQ(observer_.summaries, 1);
  EXPECT_TRUE(std::filesystem::exists(data()));
}

TEST_F(RecordingSteps, AnEngineMayTakeThemBeforePerfStarts) {
  test::EngineScript script{.before_perf = true};
  EXPECT_EQ(record(script), 0);
  EXPECT_THAT(script.calls, ElementsAre("begin", "choose_call_graph", "before_activation",
                                        "activated", "attach", "events_disabled", "switch_off",
                                        "add_to", "summarize", "switch_off", "dismiss"));
}

TEST_F(RecordingSteps, NothingBeginsWithoutATarget) {
  detector_.only = std::set<base::Pid>{};
  test::EngineScript script;
  EXPECT_EQ(record(script), kFailure);
  EXPECT_THAT(script.calls, ElementsAre("begin", "switch_off", "dismiss"));
}

TEST_F(RecordingSteps, AnEngineThatCannotBeAttachedLeavesNothing) {
  test::EngineScript script{.before_perf = true, .attached = Engine::Attached::kFailed};
  EXPECT_EQ(record(script), kFailure);
  EXPECT_THAT(script.calls, Not(Contains("events_disabled")));
  EXPECT_EQ(script.calls.back(), "dismiss");
  EXPECT_THAT(injector_.on, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(data())) << "nothing was recorded";
}

TEST_F(RecordingSteps, AnotherEngineTakesThePlaceOnlyIfTheUserLeavesTheChoice) {
  for (const auto choice : {EngineChoice::kBpf, EngineChoice::kAuto}) {
    plan_.engine = choice;
    other_.calls.clear();
    test::EngineScript script{
        .before_perf = true, .attached = Engine::Attached::kFailed, .why_replaceable = "no events"};
    const bool other = choice == EngineChoice::kAuto;
    EXPECT_EQ(record_with_fallback(opens(script)), other ? 0 : kFailure);
    EXPECT_EQ(other_.calls.empty(), !other);
    EXPECT_THAT(logger_.text(other ? LogLevel::kWarning : LogLevel::kError),
                HasSubstr("no events"));
    // Messages that a replaced engine held back are discarded: the other engine starts again.
    EXPECT_EQ(script.calls.back() == "release_events", !other);
    EXPECT_EQ(std::filesystem::exists(data()), other);
  }
}

TEST_F(RecordingSteps, AnEngineThatBreaksIsNotReplaced) {
  plan_.engine = EngineChoice::kAuto;
  test::EngineScript script{
      .before_perf = true, .attach_throws = true, .why_replaceable = "no events"};
  EXPECT_EQ(record_with_fallback(opens(script)), kFailure);
  EXPECT_THAT(other_.calls, IsEmpty());
  EXPECT_THAT(logger_.text(LogLevel::kError), HasSubstr("the engine broke"));
  EXPECT_THAT(injector_.on, IsEmpty()) << "what it had switched on is off";
}

TEST_F(RecordingSteps, AnEngineThatCannotBeOpenedDoesNothing) {
  plan_.engine = EngineChoice::kAuto;
  EXPECT_EQ(record_with_fallback([] { return std::string{"no BTF"}; }), 0);
  EXPECT_THAT(other_.calls, Contains("activated"));
  EXPECT_THAT(logger_.text(LogLevel::kWarning), HasSubstr("no BTF"));
}

// While the first perf, a stand-in, starts, a child of the target starts.
TEST_F(RecordingSteps, PerfIsStartedAgainWhereAChildStartedMeanwhile) {
  const base::Child parent{
      {.argv = {"sh", "-c",
                "trap 'while kill -0 $$ 2>&-; do :; done & : > " + (directory_ / "child") +
                    "' USR1; : > " + (directory_ / "ready") + "; while :; do :; done"},
       .death_signal = SIGKILL}};
  while (!std::filesystem::exists(directory_ / "ready")) {
    std::this_thread::yield();
  }
  plan_.targets = Processes{{parent.pid()}};
  detector_.only = std::set<base::Pid>{parent.pid()};
  plan_.perf.option = test::stand_in_perf(
      directory_, "child=" + (directory_ / "child") + "\necho >> " + (directory_ / "starts") +
                      "\n[ ! -e $child ] || exec $PERF \"$@\"\nkill -USR1 " +
                      std::to_string(parent.pid().value()) +
                      "\nuntil [ -e $child ]; do :; done\nexec $PERF \"$@\"\n");
  for (const bool misses : {false, true}) {
    std::filesystem::remove(directory_ / "starts");
    std::filesystem::remove(directory_ / "child");
    test::EngineScript script{.before_perf = true, .misses_newborn = misses};
    EXPECT_EQ(record(script), 0) << logger_.text(LogLevel::kError);
    EXPECT_EQ(std::filesystem::file_size(directory_ / "starts"), misses ? 2U : 1U);
    EXPECT_EQ(std::ranges::count(script.calls, "attach"), misses ? 2 : 1);
    EXPECT_EQ(std::ranges::count(script.calls, "activated"), 1);
  }
}

}  // namespace
}  // namespace pyinject::record
