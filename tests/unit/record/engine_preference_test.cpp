#include "record/engine_preference.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace pyinject::record {
namespace {

using base::Pid;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

python::Version release(std::uint8_t minor, std::uint8_t micro) {
  return {.major = 3, .minor = minor, .micro = micro, .level = 0xf};
}

std::string why(const TrampolineFit& target) { return why_bpf(std::vector{target}); }

TEST(EnginePreference, IsForThreadsOnReleasesThatUnmapTrampolines) {
  EXPECT_THAT(
      why({.pid = Pid{7}, .version = release(13, 5), .python_threads = 3}),
      AllOf(HasSubstr("pid 7 (Python 3.13.5) has 3 Python threads"), HasSubstr("gh-143228")));
  EXPECT_EQ(why({.pid = Pid{7}, .version = release(13, 5), .python_threads = 1}), "");
  EXPECT_EQ(why({.pid = Pid{7}, .version = release(14, 10), .python_threads = 3}), "");
}

TEST(EnginePreference, IsForProcessesThatForkMuch) {
  const auto later = HasSubstr("later recordings could not switch it on");
  EXPECT_THAT(why({.pid = Pid{7}, .version = release(14, 10), .forked = 4}),
              AllOf(HasSubstr("pid 7 (Python 3.14.10) has forked 4 running processes"), later));
  EXPECT_THAT(why({.pid = Pid{7}, .version = release(12, 1), .forked = 2}),
              AllOf(HasSubstr("has forked 2"), Not(later)));
  EXPECT_EQ(why({.pid = Pid{7}, .version = release(14, 10), .forked = 1}), "");
}

TEST(EnginePreference, IsForProcessesThatStartOthersByExec) {
  EXPECT_THAT(why({.pid = Pid{7}, .version = release(14, 10), .executed = 1}),
              HasSubstr("pid 7 starts Python processes by exec"));
}

TEST(EnginePreference, IsForWhatTheTrampolineRefusesOrLeavesOut) {
  EXPECT_EQ(why({.pid = Pid{7}, .version = release(14, 10), .obstacle = "it has the JIT"}),
            "pid 7: it has the JIT");
  EXPECT_THAT(why({.pid = Pid{7}, .version = release(14, 10), .greenlets = true}),
              HasSubstr("pid 7 has greenlets"));
  EXPECT_THAT(why({.pid = Pid{7}, .version = release(14, 10), .main_runs_python = false}),
              HasSubstr("the main thread of pid 7 runs no Python function"));
  EXPECT_EQ(why({.pid = Pid{7}, .version = release(14, 10)}), "");
}

TEST(EnginePreference, IsOneLineForAllTargets) {
  const std::vector<TrampolineFit> targets{
      {.pid = Pid{1}, .version = release(14, 10), .forked = 9},
      {.pid = Pid{2}, .version = release(14, 10)},
      {.pid = Pid{3}, .version = release(14, 2), .python_threads = 2}};
  EXPECT_THAT(why_bpf(targets),
              AllOf(HasSubstr("pid 1 "), Not(HasSubstr("pid 3 ")), Not(HasSubstr("\n"))));
  EXPECT_EQ(why_bpf(std::vector<TrampolineFit>{}), "");
}

}  // namespace
}  // namespace pyinject::record
