#include "procfs/cgroup.hpp"

#include "pyinject/base/deadline.hpp"
#include "support/patience.hpp"

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <tuple>
#include <vector>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pyinject::procfs {
namespace {

using base::Pid;
using test::kPatience;

TEST(ParseCgroup, TakesTheUnifiedHierarchy) {
  EXPECT_EQ(parse_cgroup("4:memory:/other\n0::/system.slice/a b.service\n"),
            "system.slice/a b.service");
  EXPECT_EQ(parse_cgroup("0::/\n"), "");
}

TEST(ParseCgroup, KnowsNoOtherHierarchy) {
  EXPECT_EQ(parse_cgroup("4:memory:/other\n1:name=systemd:/x\n"), std::nullopt);
  EXPECT_EQ(parse_cgroup(""), std::nullopt);
}

TEST(ParseCgroup, TakesTheHierarchyOfAController) {
  EXPECT_EQ(parse_cgroup("4:memory:/other\n2:cpu,cpuacct:/shop\n0::/\n", "cpuacct"), "shop");
  EXPECT_EQ(parse_cgroup("5:cpuset:/other\n0::/cpu:/x\n", "cpu"), std::nullopt);
}

TEST(ParseCpuLimit, KnowsBothVersions) {
  const auto two = parse_cpu_limit("50000 100000\n", "usage_usec 7\nthrottled_usec 1500\n");
  ASSERT_TRUE(two);
  EXPECT_EQ(two->cpus, 0.5);
  EXPECT_EQ(two->throttled, std::chrono::microseconds{1500});
  const auto one = parse_cpu_limit("200000 100000", "nr_throttled 1\nthrottled_time 42\n");
  ASSERT_TRUE(one);
  EXPECT_EQ(one->cpus, 2);
  EXPECT_EQ(one->throttled, std::chrono::nanoseconds{42});
  for (const auto* const none : {"max 100000", "-1 100000", "", " ", "1", "1 0", "0 1"}) {
    EXPECT_FALSE(parse_cpu_limit(none, "throttled_usec 1\n")) << none;
  }
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

// Writes TEXT into the control file PATH.
bool control(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file{path};
  file << text;
  return static_cast<bool>(file.flush());
}

TEST(ReadFrozen, NamesTheCgroupThatFreezes) {
  std::filesystem::path outer;
  for (const auto* const mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    std::error_code error;
    const auto path =
        std::filesystem::path{mount} / ("pyinject-test-" + std::to_string(::getpid()));
    if (std::filesystem::exists(std::filesystem::path{mount} / "cgroup.controllers", error) &&
        std::filesystem::create_directory(path, error)) {
      outer = path;
    }
  }
  if (outer.empty()) {
    GTEST_SKIP() << "no cgroup can be made here: it takes root and a cgroup2 mount";
  }
  const auto inner = outer / "inner";
  std::filesystem::create_directory(inner);
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (true) {
      ::pause();
    }
  }
  EXPECT_TRUE(control(inner / "cgroup.procs", std::to_string(child)));
  EXPECT_EQ(read_frozen(Pid{child}), std::nullopt);
  EXPECT_TRUE(control(outer / "cgroup.freeze", "1"));
  EXPECT_EQ(read_frozen(Pid{child}), outer.string());
  EXPECT_TRUE(control(outer / "cgroup.freeze", "0"));
  EXPECT_EQ(read_frozen(Pid{child}), std::nullopt);
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  std::filesystem::remove(inner);
  std::filesystem::remove(outer);
}

// Version 1, or version 2 where it has the controller.
TEST(ReadCpuLimits, NamesTheCgroupThatTakesCpusAway) {
  const auto name = "pyinject-test-" + std::to_string(::getpid());
  std::filesystem::path cgroup;
  for (const auto& [mount, file, limit] :
       {std::tuple{"/sys/fs/cgroup", "cpu.max", "1000 100000"},
        std::tuple{"/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "1000"}}) {
    const auto path = std::filesystem::path{mount} / name;
    std::error_code error;
    if (cgroup.empty() && std::filesystem::create_directory(path, error)) {
      if (std::filesystem::exists(path / "cgroup.procs", error) && control(path / file, limit)) {
        cgroup = path;
      } else {
        std::filesystem::remove(path, error);
      }
    }
  }
  if (cgroup.empty()) {
    GTEST_SKIP() << "no cgroup with a limit of CPUs can be made here";
  }
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (::getppid() != 0) {
    }
  }
  EXPECT_TRUE(control(cgroup / "cgroup.procs", std::to_string(child)));
  const auto deadline = base::Deadline::after(kPatience);
  std::vector<CpuLimit> limits;
  do {
    limits = read_cpu_limits(Pid{child});
  } while (!deadline.expired() && (limits.empty() || limits.front().throttled.count() == 0));
  ASSERT_FALSE(limits.empty());
  EXPECT_EQ(limits.front().cgroup, cgroup.string());
  EXPECT_EQ(limits.front().cpus, 0.01);
  EXPECT_GT(limits.front().throttled.count(), 0);
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  std::filesystem::remove(cgroup);
}

}  // namespace
}  // namespace pyinject::procfs
