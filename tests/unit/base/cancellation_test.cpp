#include "pyinject/base/cancellation.hpp"

#include <gtest/gtest.h>

#include <chrono>

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

TEST(Cancellation, DoesNotStopItsParent) {
  const Cancellation parent;
  Cancellation child{parent};
  child.cancel();
  EXPECT_FALSE(parent.stopped());
}

}  // namespace
}  // namespace pyinject::base
