#include "pyinject/base/cancellation.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace pyinject::base {
namespace {

TEST(Cancellation, IsStoppedByCancel) {
  Cancellation cancellation;
  EXPECT_FALSE(cancellation.stopped());
  cancellation.cancel();
  EXPECT_TRUE(cancellation.stopped());
  EXPECT_TRUE(cancellation.cancelled());
}

TEST(Cancellation, IsStoppedButNotCancelledByItsDeadline) {
  const Cancellation cancellation{Deadline::after(std::chrono::nanoseconds{0})};
  EXPECT_TRUE(cancellation.stopped());
  EXPECT_FALSE(cancellation.cancelled());
}

TEST(Cancellation, IsStoppedByItsParent) {
  Cancellation parent;
  const Cancellation child{parent};
  const Cancellation grandchild{child, Deadline::after(std::chrono::hours{1})};
  EXPECT_FALSE(grandchild.stopped());
  parent.cancel();
  EXPECT_TRUE(child.cancelled());
  EXPECT_TRUE(grandchild.cancelled());
  EXPECT_TRUE(grandchild.stopped());
}

// Waiting is no work: the clock of the wall alone does not use up the limit.
TEST(Cancellation, StopsWhenTheCpuTimeOfItsThreadIsSpent) {
  const auto deadline = Deadline::after(std::chrono::hours{1});
  const Cancellation parent;
  const Cancellation long_work{parent, deadline, CpuLimit{std::chrono::hours{1}}};
  const Cancellation short_work{parent, deadline, CpuLimit{std::chrono::milliseconds{20}}};
  EXPECT_FALSE(short_work.stopped());
  std::this_thread::sleep_for(std::chrono::milliseconds{40});
  EXPECT_FALSE(short_work.stopped());
  const auto patience = Deadline::after(std::chrono::minutes{1});
  while (!short_work.stopped() && !patience.expired()) {
  }
  EXPECT_TRUE(short_work.stopped());
  EXPECT_FALSE(long_work.stopped());
}

TEST(Cancellation, DoesNotStopItsParent) {
  const Cancellation parent;
  Cancellation child{parent};
  child.cancel();
  EXPECT_FALSE(parent.stopped());
}

}  // namespace
}  // namespace pyinject::base
