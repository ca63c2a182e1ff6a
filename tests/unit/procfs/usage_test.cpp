#include "procfs/usage.hpp"

#include "pyinject/base/deadline.hpp"
#include "support/child_process.hpp"
#include "support/patience.hpp"

#include <gtest/gtest.h>

#include <chrono>

#include <unistd.h>

namespace pyinject::procfs {
namespace {

using std::chrono::nanoseconds;

TEST(ThreadUsage, ParsesFaultsAndTimes) {
  const auto usage = parse_thread_usage(
      "7 (a) R 1 2) S 1 7 7 0 -1 4194304 100 0 3 0 5 6 0 0 20 0 1 0 9\n", "1000 200 5\n");
  ASSERT_TRUE(usage);
  EXPECT_EQ(usage->state, 'S');
  EXPECT_EQ(usage->minor_faults, 100);
  EXPECT_EQ(usage->major_faults, 3);
  EXPECT_EQ(usage->on_cpu, nanoseconds{1000});
  EXPECT_EQ(usage->for_cpu, nanoseconds{200});
  EXPECT_EQ(usage->arrivals, 5U);
}

TEST(ThreadUsage, RefusesOtherText) {
  EXPECT_FALSE(parse_thread_usage("", ""));
  EXPECT_FALSE(parse_thread_usage("7 (a) S 1", ""));
}

TEST(ThreadUsage, IsKnownForThisThread) {
  EXPECT_TRUE(read_thread_usage(base::Pid{::getpid()}, base::Tid{::getpid()}));
}

TEST(DescendantsUsage, CountsChildrenOfChildren) {
  const base::Pid self{::getpid()};
  const auto before = read_descendants_usage(self);
  const test::ChildProcess child{{"sh", "-c", "sh -c 'while kill -0 $PPID; do :; done' & wait"}};
  const auto deadline = base::Deadline::after(test::kPatience);
  constexpr std::chrono::milliseconds kEnough{50};
  // The child of the child alone.
  while (read_descendants_usage(child.pid()).on_cpu < kEnough && !deadline.expired()) {
  }
  EXPECT_GE(read_descendants_usage(child.pid()).on_cpu, kEnough);
  const auto running = read_descendants_usage(self);
  EXPECT_GE(running.on_cpu, before.on_cpu + kEnough);
  EXPECT_EQ(running.processes, before.processes + 2);
}

TEST(DescendantsUsage, CountsThoseThatHaveExited) {
  const base::Pid self{::getpid()};
  const auto before = read_descendants_usage(self);
  // The shell has waited for the other one when it exits.
  ASSERT_EQ(
      test::run({"sh", "-c", "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; true"})
          .status,
      test::ExitStatus{});
  EXPECT_GT(read_descendants_usage(self).on_cpu, before.on_cpu);
}

TEST(MachineUsage, ParsesStolenTime) {
  const auto usage = parse_machine_usage("cpu  10 20 30 40 50 60 70 80 0 0\ncpu0 1\n");
  ASSERT_TRUE(usage);
  EXPECT_EQ(usage->all, 360);
  EXPECT_EQ(usage->idle, 90);
  EXPECT_EQ(usage->stolen, 80);
  EXPECT_FALSE(parse_machine_usage("cpu0 1 2 3\n"));
}

}  // namespace
}  // namespace pyinject::procfs
