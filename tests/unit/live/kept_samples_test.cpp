#include "live/kept_samples.hpp"

#include "report/marks.hpp"
#include "report/names.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pyinject::live {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

constexpr std::uint64_t kMs = 1'000'000;

class KeptSamplesTest : public testing::Test {
 protected:
  KeptSamplesTest() {
    kept.name({.number = 1, .qualname = "inner", .file = "/srv/a.py"});
    kept.name({.number = 2, .qualname = "outer", .file = "/srv/a.py"});
  }
  static sample::Stack stack() {
    return {.pid = 7, .tid = 8, .frames = {{.code = 1, .line = 5}, {.code = 2, .line = 3}}};
  }
  // "cpu-clock 5 at 20: outer;inner", in milliseconds.
  std::vector<std::string> lines(std::uint64_t lost = 0) {
    profile = std::move(kept).finish(
        [](std::uint32_t /*pid*/, std::uint32_t tid) {
          return KeptSamples::Names{fmt::format("thread {}", tid), "web"};
        },
        lost);
    std::vector<std::string> result;
    for (const auto& sample : profile.samples) {
      const auto frames = report::frames_of(profile, sample.stack);
      std::string text;
      for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
        text += (text.empty() ? "" : ";") +
                report::name_of(profile, report::function_of(profile, *frame));
      }
      result.push_back(fmt::format("{} {} at {}: {}", profile.events.at(sample.event).name,
                                   sample.period / kMs, sample.time / kMs, text));
    }
    return result;
  }
  KeptSamples kept{milliseconds{5}};
  report::Profile profile;
};

TEST_F(KeptSamplesTest, AreASampleOrAWaitEach) {
  kept.add_wait(stack(), milliseconds{30}, 40 * kMs);
  kept.add(stack(), 2, sample::Use::kC, false, 20 * kMs);
  kept.add(stack(), 1, sample::Use::kKernel, false, 30 * kMs);
  EXPECT_THAT(lines(3), ElementsAre("context-switches 30 at 10: outer;inner",
                                    "cpu-clock 10 at 20: outer;inner;[C function]",
                                    "cpu-clock 5 at 30: outer;inner;[kernel]"));
  EXPECT_EQ(profile.lost, 3U);
  EXPECT_EQ(profile.threads.front().name, "thread 8");
  EXPECT_EQ(profile.threads.front().process, "web");
  EXPECT_EQ(profile.samples.at(1).does, sample::Does::kCall);
}

TEST_F(KeptSamplesTest, MarkTheGilTasksGreenletsAndWhatIsMissing) {
  auto one = stack();
  one.gil = sample::Gil::kHeld;
  one.task = "fetch";
  kept.add(one, 1, sample::Use::kPython, false, 10 * kMs);
  auto greenlet = stack();
  greenlet.parents = {{.code = sample::kGreenlet}, {.code = 2}};
  kept.add(greenlet, 1, sample::Use::kPython, true, 20 * kMs);
  kept.add(greenlet, 1, sample::Use::kPython, false, 30 * kMs);
  auto cut = stack();
  cut.truncated = true;
  cut.frames.back().code = 9;
  kept.add(cut, 1, sample::Use::kPython, false, 40 * kMs);
  EXPECT_THAT(lines(), ElementsAre("cpu-clock 5 at 10: [GIL held];[task fetch];outer;inner",
                                   "cpu-clock 5 at 20: outer;[greenlet];outer;inner",
                                   "cpu-clock 5 at 30: outer;inner",
                                   "cpu-clock 5 at 40: [truncated: python stack];[unknown];inner"));
}

}  // namespace
}  // namespace pyinject::live
