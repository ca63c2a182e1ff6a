#include "pyinject/base/child.hpp"
#include "pyinject/base/error.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

namespace pyinject::base {
namespace {

using std::chrono::seconds;

TEST(ExitStatus, IsThatOfAShell) {
  EXPECT_EQ(decode_wait_status(3 << 8).shell_status(), 3);
  EXPECT_EQ(decode_wait_status(SIGTERM).shell_status(), 143);
  EXPECT_EQ(describe(decode_wait_status(3 << 8)), "exit status 3");
  EXPECT_EQ(describe(decode_wait_status(SIGKILL)), "killed by signal 9 (Killed)");
}

TEST(Child, EndsWithItsStatus) {
  Child child{{.argv = {"sh", "-c", "exit 7"}}};
  EXPECT_EQ(child.wait(Deadline::after(seconds{10})), (ExitStatus{false, 7}));
  EXPECT_EQ(child.try_wait(), (ExitStatus{false, 7})) << "asked again";
}

TEST(Child, IsStillThereAtTheDeadline) {
  Child child{{.argv = {"sleep", "60"}}};
  EXPECT_EQ(child.wait(Deadline::after(std::chrono::milliseconds{20})), std::nullopt);
  child.send_signal(SIGTERM);
  EXPECT_EQ(child.wait(Deadline::after(seconds{10})), (ExitStatus{true, SIGTERM}));
}

TEST(Child, SaysWhyItCannotRun) {
  try {
    Child child{{.argv = {"/nonexistent/program"}}};
    FAIL() << "it cannot run";
  } catch (const SystemError& error) {
    EXPECT_EQ(error.code(), ENOENT);
    EXPECT_STREQ(error.what(), "cannot run /nonexistent/program: No such file or directory");
  }
}

TEST(RunCaptured, TakesBothOutputs) {
  const auto run =
      run_captured({"sh", "-c", "echo out; echo err >&2; exit 2"}, Deadline::after(seconds{10}));
  EXPECT_EQ(run.output, "out\nerr\n");
  EXPECT_EQ(run.status, (ExitStatus{false, 2}));
}

TEST(RunCaptured, KillsAtTheDeadline) {
  const auto run = run_captured({"sleep", "60"}, Deadline::after(std::chrono::milliseconds{50}));
  EXPECT_EQ(run.status, std::nullopt);
}

}  // namespace
}  // namespace pyinject::base
