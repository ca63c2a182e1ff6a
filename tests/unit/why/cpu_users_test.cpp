#include "why/cpu_users.hpp"

#include "procfs/tasks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

namespace pyinject::why {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;
using Kind = RingRecord::Kind;

class CpuUsersTest : public testing::Test {
 protected:
  CpuUsersTest() { users.begin(1000); }
  void add(Kind kind, std::uint64_t time, std::uint32_t tid, std::uint32_t pid) {
    users.add({.kind = kind, .pid = pid, .tid = tid, .time = time});
  }
  static constexpr std::uint32_t kNobody = 0x7ffffff0;
  const std::uint32_t self = static_cast<std::uint32_t>(::getpid());
  const std::string name = procfs::read_comm(base::Pid{::getpid()}, base::Tid{::getpid()}).value();
  CpuUsers users;
};

TEST_F(CpuUsersTest, AddsUpThreadsOfProcessesByName) {
  add(Kind::kIn, 1100, 1, self);
  add(Kind::kOut, 1300, 1, self);
  add(Kind::kIn, 1200, 2, self);
  add(Kind::kPreempted, 1250, 2, self);
  add(Kind::kIn, 1400, 3, kNobody);
  add(Kind::kOut, 1410, 3, kNobody);
  EXPECT_THAT(users.times(2000), UnorderedElementsAre(Pair(name, 250), Pair("", 10)));
}

TEST_F(CpuUsersTest, KnowsThreadsThatAreOnACpuAtTheBeginningAndAtTheEnd) {
  add(Kind::kOut, 1100, 1, self);
  add(Kind::kIn, 900, 2, self);
  EXPECT_THAT(users.times(2000), ElementsAre(Pair(name, 100 + 1000)));
}

TEST_F(CpuUsersTest, AnExitIsTheEnd) {
  add(Kind::kIn, 1100, 1, self);
  add(Kind::kExit, 1150, 1, self);
  EXPECT_THAT(users.times(2000), ElementsAre(Pair(name, 50)));
}

TEST_F(CpuUsersTest, LeavesOutTheIdleTaskAndOtherRecords) {
  add(Kind::kIn, 1100, 0, 0);
  add(Kind::kOut, 1300, 0, 0);
  add(Kind::kIn, 1100, 5, 0xffffffff);
  add(Kind::kSample, 1100, 1, self);
  EXPECT_THAT(users.times(2000), IsEmpty());
}

}  // namespace
}  // namespace pyinject::why
