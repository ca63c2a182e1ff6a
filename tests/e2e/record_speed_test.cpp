// The speed of a program after a recording. To show that the measurement works, it must see the
// slowdown while the trampoline is on.
#include "e2e/speed_of_calls.hpp"

#include <gtest/gtest.h>

namespace pyinject::test {
namespace {

class SpeedOfCalls : public testing::TestWithParam<Interpreter> {};

TEST_P(SpeedOfCalls, IsThatOfBeforeWhenTheRecordingIsOver) {
  const auto speed = relative_speed(GetParam(), {"-F", "99"}, [](const RelativeSpeed& measured) {
    return measured.after > 0.9 && measured.after < 1.1 && measured.active < 0.9;
  });
  EXPECT_GT(speed.after, 0.9);
  EXPECT_LT(speed.after, 1.1);
  EXPECT_LT(speed.active, 0.9) << "the measurement does not see the trampoline";
}

INSTANTIATE_TEST_SUITE_P(Pythons, SpeedOfCalls,
                         testing::ValuesIn(interpreters({.each_version = Prefer::kChrooted})),
                         InterpreterName{});

}  // namespace
}  // namespace pyinject::test
