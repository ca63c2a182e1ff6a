#include "procfs/status.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

namespace pyinject::procfs {
namespace {

using base::Pid;
using base::Tid;
using testing::ElementsAre;

constexpr std::string_view kWhole =
    "Name:\tpython: 1\n"
    "Umask:\t0022\n"
    "State:\tt (tracing stop)\n"
    "Tgid:\t4711\n"
    "Ngid:\t0\n"
    "Pid:\t4713\n"
    "PPid:\t1\n"
    "TracerPid:\t99\n"
    "Uid:\t1000\t1001\t1002\t1003\n"
    "Gid:\t100\t101\t102\t103\n"
    "FDSize:\t256\n"
    "Groups:\t4 24 4294967294 \n"
    "NSpid:\t4713\t12\t3\n"
    "Threads:\t7\n"
    "SigBlk:\t0000000000000002\n"
    "CapEff:\t000001ffffffffff\n"
    "Seccomp:\t2\n"
    "Seccomp_filters:\t1\n"
    "x86_Thread_features:\tshstk wrss \n"
    "voluntary_ctxt_switches:\t19\n"
    "nonvoluntary_ctxt_switches:\t3\n";

TEST(ParseStatus, TakesEveryField) {
  const auto status = parse_status(kWhole);
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->name, "python: 1");
  EXPECT_EQ(status->state, 't');
  EXPECT_EQ(status->switches, 22U);
  EXPECT_EQ(status->voluntary_switches, 19U);
  EXPECT_EQ(status->process, Pid{4711});
  EXPECT_EQ(status->task, Tid{4713});
  EXPECT_EQ(status->parent, Pid{1});
  EXPECT_EQ(status->tracer, Pid{99});
  EXPECT_THAT(status->uids, ElementsAre(1000, 1001, 1002, 1003));
  EXPECT_THAT(status->gids, ElementsAre(100, 101, 102, 103));
  EXPECT_THAT(status->groups, ElementsAre(4, 24, 4294967294));
  EXPECT_THAT(status->namespace_pids, ElementsAre(4713, 12, 3));
  EXPECT_EQ(status->threads, 7U);
  EXPECT_EQ(status->descriptor_slots, 256U);
  EXPECT_EQ(status->blocked_signals, 2U);
  EXPECT_EQ(status->effective_capabilities, 0x1ffffffffffU);
  EXPECT_EQ(status->seccomp, SeccompMode::kFilter);
}

TEST(ParseStatus, RefusesWhatIsNoStatus) {
  EXPECT_FALSE(parse_status("").has_value());
  EXPECT_FALSE(parse_status("State:\n").has_value());
  EXPECT_FALSE(parse_status("State:\tS\nTgid:\t-\nPid:\t1\n").has_value());
}

TEST(ParseStatus, SurvivesEveryTruncation) {
  for (std::size_t length = 0; length < kWhole.size(); ++length) {
    (void)parse_status(kWhole.substr(0, length));
  }
}

TEST(ReadStatus, ReadsThisProcessAndItsThread) {
  const auto status = read_status(Pid{::getpid()});
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->process.value(), ::getpid());
  EXPECT_EQ(status->parent.value(), ::getppid());
  EXPECT_EQ(status->uids[1], ::geteuid());
  EXPECT_EQ(status->state, 'R');
  EXPECT_EQ(status->namespace_pids.front(), ::getpid());
  const auto task = read_status(Pid{::getpid()}, Tid{::gettid()});
  ASSERT_TRUE(task.has_value());
  EXPECT_EQ(task->task.value(), ::gettid());
  EXPECT_FALSE(read_status(Pid{0x7fffffff}).has_value());
}

}  // namespace
}  // namespace pyinject::procfs
