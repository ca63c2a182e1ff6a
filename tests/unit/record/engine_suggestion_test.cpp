#include "record/engine_suggestion.hpp"

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

std::string suggestion(const TrampolineBurden& target) { return suggest_bpf({{target}}); }

TEST(EngineSuggestion, IsForThreadsOnReleasesThatUnmapTrampolines) {
  EXPECT_THAT(suggestion({.pid = Pid{7}, .version = release(13, 5), .python_threads = 3}),
              AllOf(HasSubstr("pid 7 (Python 3.13.5) has 3 Python threads"), HasSubstr("gh-143228"),
                    HasSubstr("--engine bpf")));
  EXPECT_EQ(suggestion({.pid = Pid{7}, .version = release(13, 5), .python_threads = 1}), "");
  EXPECT_EQ(suggestion({.pid = Pid{7}, .version = release(14, 10), .python_threads = 3}), "");
}

TEST(EngineSuggestion, IsForProcessesThatForkMuch) {
  const auto later = HasSubstr("(forked_after_activation)");
  EXPECT_THAT(suggestion({.pid = Pid{7}, .version = release(14, 10), .forked = 4}),
              AllOf(HasSubstr("pid 7 (Python 3.14.10) has forked 4 running processes"), later,
                    HasSubstr("--engine bpf")));
  EXPECT_THAT(suggestion({.pid = Pid{7}, .version = release(12, 1), .forked = 2}),
              AllOf(HasSubstr("has forked 2"), Not(later)));
  EXPECT_EQ(suggestion({.pid = Pid{7}, .version = release(14, 10), .forked = 1}), "");
}

TEST(EngineSuggestion, IsOneLineForAllTargets) {
  const std::vector<TrampolineBurden> targets{
      {.pid = Pid{1}, .version = release(14, 10), .forked = 9},
      {.pid = Pid{2}, .version = release(14, 10)},
      {.pid = Pid{3}, .version = release(14, 2), .python_threads = 2}};
  EXPECT_THAT(suggest_bpf(targets),
              AllOf(HasSubstr("pid 3 "), Not(HasSubstr("pid 1 ")), Not(HasSubstr("\n"))));
  EXPECT_EQ(suggest_bpf({}), "");
}

}  // namespace
}  // namespace pyinject::record
