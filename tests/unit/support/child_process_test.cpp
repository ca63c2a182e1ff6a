#include "support/child_process.hpp"

#include "pyinject/base/error.hpp"
#include "support/patience.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include <unistd.h>

namespace pyinject::test {
namespace {

using base::Deadline;
using std::chrono::milliseconds;

TEST(ChildProcess, TalksThroughPipes) {
  ChildProcess child{{"sh", "-c", "read a; echo \"got $a\"; read b; echo $b >&2; exit 3"}};
  child.write("one\n");
  EXPECT_EQ(child.read_line(Deadline::after(kPatience)), "got one");
  EXPECT_TRUE(child.running());
  child.write("two\n");
  EXPECT_EQ(child.wait(Deadline::after(kPatience)), (ExitStatus{.code = 3, .signal = 0}));
  EXPECT_EQ(child.err(), "two\n");
  EXPECT_FALSE(child.running());
  EXPECT_EQ(child.read_line(Deadline::after(kPatience)), std::nullopt);
}

TEST(ChildProcess, MeetsTheDeadline) {
  ChildProcess child{{"cat"}};
  EXPECT_EQ(child.read_line(Deadline::after(milliseconds{20})), std::nullopt);
  EXPECT_EQ(child.wait(Deadline::after(milliseconds{20})), std::nullopt);
  child.signal(SIGTERM);
  EXPECT_EQ(child.wait(Deadline::after(kPatience)), (ExitStatus{.code = 0, .signal = SIGTERM}));
}

TEST(ChildProcess, GivesTheLastLinesOfOneThatHasEnded) {
  ChildProcess child{{"printf", "a\\nb\\nrest"}};
  ASSERT_TRUE(child.wait(Deadline::after(kPatience)).has_value());
  EXPECT_EQ(child.read_line(Deadline::after(kPatience)), "a");
  EXPECT_EQ(child.read_line(Deadline::after(kPatience)), "b");
  EXPECT_EQ(child.read_line(Deadline::after(kPatience)), std::nullopt);
  EXPECT_EQ(child.out(), "rest");
}

TEST(ChildProcess, IsGoneWithItsObject) {
  pid_t pid = 0;
  {
    const ChildProcess child{{"cat"}};
    pid = child.pid().value();
    EXPECT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST(ChildProcess, SaysThatThereIsNoSuchProgram) {
  EXPECT_THROW((ChildProcess{{"no-such-program-of-pyinject"}}), base::SystemError);
}

TEST(Run, GivesOutputStatusAndEnvironment) {
  const TempDir directory;
  RunOptions options;
  options.child.env = {{"PYINJECT_TEST_A", "1"}};
  options.child.unset = {"HOME"};
  options.child.directory = directory.path().string();
  options.input = "in";
  const auto result = run(
      {"sh", "-c", "echo $PYINJECT_TEST_A ${HOME-none} $(cat); pwd; echo no >&2; exit 2"}, options);
  EXPECT_EQ(result.status, (ExitStatus{.code = 2, .signal = 0}));
  EXPECT_EQ(result.out,
            "1 none in\n" + std::filesystem::canonical(directory.path()).string() + "\n");
  EXPECT_EQ(result.err, "no\n");
}

TEST(Run, TakesMoreOutputThanAPipeHolds) {
  const auto result = run({"sh", "-c", "head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2"});
  EXPECT_EQ(result.out.size(), 300000U);
  EXPECT_EQ(result.err.size(), 300000U);
}

TEST(Run, ThrowsAtTheDeadline) {
  RunOptions options;
  options.deadline = milliseconds{50};
  EXPECT_THROW((void)run({"sh", "-c", "echo before; exec tail -f /dev/null"}, options),
               base::Error);
}

TEST(Run, ChangesTheUser) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root";
  }
  RunOptions options;
  options.child.uid = 65534;
  EXPECT_EQ(run({"id", "-u"}, options).out, "65534\n");
}

TEST(TempDir, IsRemovedWithAllItHolds) {
  std::filesystem::path path;
  {
    const TempDir directory;
    path = directory.path();
    std::filesystem::create_directory(directory / "inner");
    (void)directory.file("inner/file", "text");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace pyinject::test
