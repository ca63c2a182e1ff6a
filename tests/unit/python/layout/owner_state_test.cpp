#include "procfs/stat.hpp"
#include "pyinject/python/target.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

namespace pyinject::python {
namespace {

// Switched on by this process.
Target own_target() {
  Target target;
  target.state = TrampolineState::kOnByUs;
  target.owner = procfs::read_process_id(base::Pid{::getpid()}).value();
  target.owner_namespace = own_pid_namespace();
  return target;
}

TEST(OwnerState, IsLivesForASessionThatRuns) {
  EXPECT_EQ(owner_state(own_target()), OwnerState::kLives);
}

TEST(OwnerState, IsGoneIfThePidIsAnotherProcesss) {
  auto target = own_target();
  ++target.owner.start_time;
  EXPECT_EQ(owner_state(target), OwnerState::kGone);
}

TEST(OwnerState, IsNoneForNoSession) {
  auto target = own_target();
  target.owner = {};
  EXPECT_EQ(owner_state(target), OwnerState::kNone);
}

// The owner has the pid and the start time of this process.
TEST(OwnerState, IgnoresProcessesOfAnotherNamespace) {
  auto target = own_target();
  ++target.owner_namespace;
  EXPECT_NE(owner_state(target), OwnerState::kLives);
}

TEST(OwnerState, IsUnknownIfTheSessionNotedNoNamespace) {
  auto target = own_target();
  ++target.owner.start_time;
  target.owner_namespace = 0;
  target.inner_pid = base::Pid{1};
  target.id.pid = base::Pid{2};
  EXPECT_EQ(owner_state(target), OwnerState::kUnknown);
}

}  // namespace
}  // namespace pyinject::python
