#include "procfs/cgroup.hpp"

#include <gtest/gtest.h>

#include <array>

#include <sys/wait.h>
#include <unistd.h>

namespace pyinject::procfs {
namespace {

using base::Pid;

TEST(ParseCgroup, TakesTheUnifiedHierarchy) {
  EXPECT_EQ(parse_cgroup("4:memory:/other\n0::/system.slice/a b.service\n"),
            "system.slice/a b.service");
  EXPECT_EQ(parse_cgroup("0::/\n"), "");
}

TEST(ParseCgroup, KnowsNoOtherHierarchy) {
  EXPECT_EQ(parse_cgroup("4:memory:/other\n1:name=systemd:/x\n"), std::nullopt);
  EXPECT_EQ(parse_cgroup(""), std::nullopt);
}

TEST(ReadCgroup, FailsForNoProcess) { EXPECT_EQ(read_cgroup(Pid{0x7fffffff}), std::nullopt); }

TEST(ReadCgroup, IsInherited) {
  const auto own = read_cgroup(Pid{::getpid()});
  std::array<int, 2> ends{-1, -1};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[1]);
    char byte = 0;
    ::_exit(static_cast<int>(::read(ends[0], &byte, 1)));
  }
  EXPECT_EQ(read_cgroup(Pid{child}), own);
  ::close(ends[0]);
  ::close(ends[1]);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace pyinject::procfs
