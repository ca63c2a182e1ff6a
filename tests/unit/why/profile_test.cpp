#include "why/profile.hpp"

#include "report/marks.hpp"
#include "report/names.hpp"
#include "unit/why/made_recording.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pyinject::why {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class WhyProfileTest : public testing::Test, protected MadeRecording {
 protected:
  // "cpu-clock 10: root;outer;inner", in order of time; the period in milliseconds.
  std::vector<std::string> lines() {
    const auto accounts = account(recording);
    profile = to_profile(recording, accounts);
    std::vector<std::string> result;
    for (const auto& sample : profile.samples) {
      const auto frames = report::frames_of(profile, sample.stack);
      std::string stack;
      for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
        stack += (stack.empty() ? "" : ";") +
                 report::name_of(profile, report::function_of(profile, *frame));
      }
      result.push_back(fmt::format("{} {}: {}", profile.events.at(sample.event).name,
                                   sample.period / kMs, stack));
    }
    return result;
  }
  report::Profile profile;
};

TEST_F(WhyProfileTest, HasTheTimesOfSamplesAndWaits) {
  thread(1, "worker");
  recording.codes = {0, recording.names.number("memcpy"), recording.names.number("/lib/libm.so")};
  const auto work = stack({"inner", "outer"});
  in(1, 0);
  sample(1, 5, CodeKind::kEvaluator, work);
  sample(1, 10, CodeKind::kC, work);
  recording.events.back().place = 1;
  sample(1, 15, CodeKind::kC, work);
  recording.events.back().place = 2;
  sample(1, 20, CodeKind::kEvaluator, work);
  recording.python.back().collects = true;
  out(1, 40, Use::kFutex, work, sample::Gil::kWaitedFor);
  in(1, 70);
  EXPECT_THAT(lines(), ElementsAre("cpu-clock 17: [GIL held];outer;inner",
                                   "cpu-clock 17: [GIL held];outer;inner;memcpy",
                                   "cpu-clock 17: [GIL held];outer;inner;[libm.so]",
                                   "cpu-clock 17: [GIL held];outer;inner;[gc]",
                                   "context-switches 30: [waiting for the GIL];outer;inner"));
  EXPECT_EQ(profile.threads.front().name, "worker");
  EXPECT_EQ(profile.frames.at(profile.nodes.at(2).frame).line, 11U) << "of outer";
}

TEST_F(WhyProfileTest, SaysWhatOnlyASnapshotTells) {
  const auto at_lock = stack({"acquire"});
  in(1, 0);
  out(1, 10, Use::kFutex, at_lock);
  recording.events.at(1).place = recording.names.number("futex_wait");
  sighting(1, 20, Use::kFutex, at_lock).object = Sighting::Object::kLock;
  in(1, 60);
  event(1, 70, Event::Kind::kPreempted);
  EXPECT_THAT(lines(), ElementsAre("context-switches 50: acquire;[waits for a lock];futex_wait",
                                   "context-switches 30: [preempted]"));
}

TEST_F(WhyProfileTest, MarksStacksThatAreNotWhole) {
  in(1, 0);
  sample(1, 10, CodeKind::kEvaluator, stack({"inner"}));
  recording.python.back().kind = perfdata::StackKind::kCut;
  recording.python.back().gil = sample::Gil::kNone;
  recording.events.push_back(
      {.time = at(20), .tid = 1, .kind = Event::Kind::kSample, .code = CodeKind::kEvaluator});
  EXPECT_THAT(lines(), ElementsAre("cpu-clock 50: [truncated: python stack];inner",
                                   "cpu-clock 50: [unnamed Python functions]"));
  EXPECT_THAT(profile.notes,
              ElementsAre(HasSubstr("100.0 % of the 2 samples lack Python functions")));
}

TEST_F(WhyProfileTest, SaysThatTheEndOfTheRecordingIsMissing) {
  EXPECT_THAT(lines(), IsEmpty());
  EXPECT_THAT(profile.notes, IsEmpty());
  recording.cut = true;
  EXPECT_THAT(lines(), IsEmpty());
  EXPECT_THAT(profile.notes, ElementsAre(HasSubstr("the end of the recording is missing")));
}

}  // namespace
}  // namespace pyinject::why
