// The tool, or the tool and its guard, run out of a resource when targets must be switched off.
#include "base/file.hpp"
#include "procfs/descriptors.hpp"
#include "support/checked_target.hpp"
#include "support/child_process.hpp"
#include "support/guards.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/pids_group.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>
#include <set>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

namespace pyinject::test {
namespace {

using base::Deadline;
using testing::HasSubstr;

bool has_timer(base::Pid pid) {
  const auto open = procfs::list_descriptors(pid).value_or(std::vector<int>{});
  return std::ranges::any_of(open, [pid](int number) {
    return procfs::read_descriptor_link(pid, number) == "anon_inode:[timerfd]";
  });
}

class ShortageTest : public testing::Test {
 protected:
  // Records until end() is called.
  void begin() {
    tool_ = std::make_unique<ChildProcess>(std::vector<std::string>{
        test::tool(), "record", "-e", "cpu-clock", "-F", "99", "-p", target_.pid_text(), "-o",
        directory_ / "perf.data", "--", "sh", "-c", "echo begun; read line"});
    ASSERT_EQ(tool_->read_line(Deadline::after(kPatience)), "begun") << tool_->err();
    // The command may be ahead of the tool: the timer is the last thing that it opens.
    const auto patience = Deadline::after(kPatience);
    while (!has_timer(tool_->pid())) {
      ASSERT_FALSE(patience.expired()) << tool_->err();
    }
  }
  ExitStatus end() {
    tool_->write("\n");
    return tool_->wait(Deadline::after(kPatience)).value_or(ExitStatus{.code = -1});
  }

  Guards guards_;
  TempDir directory_;
  CheckedTarget target_{newest_interpreter(), Doing::kComputes};
  std::unique_ptr<ChildProcess> tool_;
};

// The lowest free descriptor of PID.
rlim_t first_free_descriptor(base::Pid pid) {
  rlim_t number = 0;
  while (std::filesystem::is_symlink(fmt::format("/proc/{}/fd/{}", pid.value(), number))) {
    ++number;
  }
  return number;
}

TEST_F(ShortageTest, DoesNotKeepTheToolFromSwitchingOff) {
  begin();
  const auto most = first_free_descriptor(tool_->pid());
  const rlimit limit{.rlim_cur = most, .rlim_max = most};
  ASSERT_EQ(::prlimit(tool_->pid().value(), RLIMIT_NOFILE, &limit, nullptr), 0);
  EXPECT_EQ(end(), ExitStatus{}) << tool_->err();
  EXPECT_TRUE(target_.is_off()) << tool_->err();
  EXPECT_FALSE(test::guard_of(base::Pid{::getpid()}));
  target_.expect_unharmed_and_off();
}

class PidsShortageTest : public ShortageTest {
 protected:
  void SetUp() override {
    if (!group_.valid()) {
      GTEST_SKIP() << "no pids controller at /sys/fs/cgroup/pids, or no right to use it";
    }
    begin();
    const auto guard = test::guard_of(tool_->pid());
    ASSERT_TRUE(guard);
    group_.add(tool_->pid());
    group_.add(guard->pid);
    group_.allow_no_more();
  }

  PidsGroup group_;
};

TEST_F(PidsShortageTest, DoesNotKeepTheToolFromSwitchingOff) {
  (void)end();
  EXPECT_TRUE(target_.is_off()) << tool_->err();
  EXPECT_FALSE(test::guard_of(base::Pid{::getpid()}));
  target_.expect_unharmed_and_off();
}

TEST_F(PidsShortageTest, DoesNotKeepTheGuardFromSwitchingOff) {
  tool_->signal(SIGKILL);
  (void)tool_->wait(Deadline::after(kPatience));
  guards_.wait_for_guards();
  target_.expect_unharmed_and_off();
}

}  // namespace
}  // namespace pyinject::test
