#include "procfs/cgroup.hpp"

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include <sys/prctl.h>
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

}  // namespace
}  // namespace pyinject::procfs
