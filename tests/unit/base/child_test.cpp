#include "pyinject/base/child.hpp"

#include "base/file.hpp"
#include "pyinject/base/error.hpp"
#include "support/patience.hpp"
#include "support/sanitizers.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

namespace pyinject::base {
namespace {

TEST(ExitStatus, IsThatOfAShell) {
  EXPECT_EQ(decode_wait_status(3 << 8).shell_status(), 3);
  EXPECT_EQ(decode_wait_status(SIGTERM).shell_status(), 143);
  EXPECT_EQ(describe(decode_wait_status(3 << 8)), "exit status 3");
  EXPECT_EQ(describe(decode_wait_status(SIGKILL)), "killed by signal 9 (Killed)");
}

TEST(Child, EndsWithItsStatus) {
  Child child{{.argv = {"sh", "-c", "exit 7"}}};
  EXPECT_EQ(child.wait(Deadline::after(test::kPatience)), (ExitStatus{false, 7}));
  EXPECT_EQ(child.try_wait(), (ExitStatus{false, 7})) << "second call";
}

TEST(Child, IsStillThereAtTheDeadline) {
  Child child{{.argv = {"sleep", "60"}}};
  EXPECT_EQ(child.wait(Deadline::after(std::chrono::milliseconds{20})), std::nullopt);
  child.send_signal(SIGTERM);
  EXPECT_EQ(child.wait(Deadline::after(test::kPatience)), (ExitStatus{true, SIGTERM}));
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

// All descriptors but the child's pidfd are there. A program that has begun to run is not ended for
// want of one.
TEST(Child, DoesNotRunWithoutAPidfd) {
  if (test::kUndefinedBehaviorSanitizer) {
    GTEST_SKIP() << "UndefinedBehaviorSanitizer needs descriptors itself";
  }
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);  // which the program inherits
  const UniqueFd read_end{ends[0]};
  UniqueFd write_end{ends[1]};
  std::array<UniqueFd, 5> free;
  for (auto& fd : free) {
    fd.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit four{.rlim_cur = static_cast<rlim_t>(free.back().get()),
                    .rlim_max = before.rlim_max};
  for (auto& fd : free) {
    fd.reset();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &four), 0);
  const auto say = "echo it ran >&" + std::to_string(write_end.get());
  EXPECT_THROW((Child{{.argv = {"sh", "-c", say}}}), SystemError);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  write_end.reset();
  EXPECT_EQ(base::read_fd(read_end.get(), 100, "the pipe"), "");  // until nobody can write
}

struct Ends {
  UniqueFd read;
  UniqueFd write;
};

Ends make_ends() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  return {UniqueFd{ends[0]}, UniqueFd{ends[1]}};
}

std::string all_from(Ends ends) {
  ends.write.reset();
  return read_fd(ends.read.get(), 4096, "pipe");
}

TEST(Child, StartsWithWhatItIsGiven) {
  ASSERT_EQ(::setenv("PYINJECT_TEST_OLD", "old", 1), 0);
  Ends ends = make_ends();
  Child child{{.argv = {"sh", "-c", "echo $PYINJECT_TEST_OLD $PYINJECT_TEST_NEW"},
               .stdout_fd = ends.write.get(),
               .ignored = {SIGHUP},
               .environment = {{"PYINJECT_TEST_NEW", "a b"}, {"PYINJECT_TEST_OLD", "new"}}}};
  EXPECT_EQ(child.wait(Deadline::after(test::kPatience)), (ExitStatus{false, 0}));
  EXPECT_EQ(all_from(std::move(ends)), "new a b\n");
  Child quiet{{.argv = {"sh", "-c", "kill -HUP $$"}, .ignored = {SIGHUP}}};
  EXPECT_EQ(quiet.wait(Deadline::after(test::kPatience)), (ExitStatus{false, 0}));
  Child loud{{.argv = {"sh", "-c", "kill -HUP $$"}}};
  EXPECT_EQ(loud.wait(Deadline::after(test::kPatience)), (ExitStatus{true, SIGHUP}));
}

TEST(Child, RunsWhenItIsReleased) {
  Ends ends = make_ends();
  Child child{{.argv = {"echo", "here"}, .stdout_fd = ends.write.get(), .held = true}};
  pollfd written{.fd = ends.read.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&written, 1, 50), 0);
  EXPECT_EQ(child.try_wait(), std::nullopt);
  child.release();
  EXPECT_EQ(child.wait(Deadline::after(test::kPatience)), (ExitStatus{false, 0}));
  EXPECT_EQ(all_from(std::move(ends)), "here\n");
  Child missing{{.argv = {"/nonexistent/program"}, .held = true}};
  EXPECT_THROW(missing.release(), SystemError);
}

TEST(Child, NeverRunsWhenItIsNotReleased) {
  Ends ends = make_ends();
  { const Child child{{.argv = {"echo", "here"}, .stdout_fd = ends.write.get(), .held = true}}; }
  EXPECT_EQ(all_from(std::move(ends)), "");
}

TEST(Child, KilledWhileItIsHeldIsNoMystery) {
  Child child{{.argv = {"true"}, .held = true}};
  child.send_signal(SIGKILL);
  (void)::signal(SIGPIPE, SIG_IGN);
  child.release();
  EXPECT_EQ(child.wait(Deadline::after(test::kPatience)), (ExitStatus{true, SIGKILL}));
}

TEST(RunCaptured, TakesBothOutputs) {
  const auto run = run_captured({"sh", "-c", "echo out; echo err >&2; exit 2"},
                                Deadline::after(test::kPatience));
  EXPECT_EQ(run.output, "out\nerr\n");
  EXPECT_EQ(run.status, (ExitStatus{false, 2}));
}

TEST(RunCaptured, KillsAtTheDeadline) {
  const auto run = run_captured({"sleep", "60"}, Deadline::after(std::chrono::milliseconds{50}));
  EXPECT_EQ(run.status, std::nullopt);
}

}  // namespace
}  // namespace pyinject::base
