#include "procfs/tasks.hpp"

#include "procfs/cmdline.hpp"
#include "procfs/maps.hpp"
#include "procfs/stat.hpp"
#include "procfs/status.hpp"
#include "pyinject/base/error.hpp"
#include "support/sanitizers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <future>
#include <optional>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pyinject::procfs {
namespace {

using base::Pid;
using base::Tid;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(Tasks, HoldThisThreadAndProcess) {
  EXPECT_THAT(list_tasks(Pid{::getpid()}), Contains(Tid{::gettid()}));
  EXPECT_THAT(list_processes(), Contains(Pid{::getpid()}));
  EXPECT_THAT(list_tasks(Pid{0x7fffffff}), IsEmpty());
}

TEST(CountTasks, CountsAThreadThatStarts) {
  const auto tasks = open_tasks(Pid{::getpid()});
  ASSERT_TRUE(tasks.valid());
  const auto before = count_tasks(tasks);
  EXPECT_EQ(before, list_tasks(Pid{::getpid()}).size());
  std::promise<void> end;
  std::thread thread{[&end] { end.get_future().wait(); }};
  EXPECT_EQ(count_tasks(tasks), before.value() + 1);
  end.set_value();
  thread.join();
}

TEST(CountTasks, FailsForNoProcess) {
  const auto tasks = open_tasks(Pid{0x7fffffff});
  EXPECT_FALSE(tasks.valid());
  EXPECT_EQ(count_tasks(tasks), std::nullopt);
}

// A shortage of descriptors, in a separate process.
TEST(Shortage, SaysNothingAboutAProcess) {
  if (test::kUndefinedBehaviorSanitizer) {
    GTEST_SKIP() << "UndefinedBehaviorSanitizer needs descriptors itself";
  }
  const pid_t child = ::fork();
  if (child == 0) {
    const Pid self{::getpid()};
    const auto id = read_process_id(self).value();
    const rlimit none{};
    ::setrlimit(RLIMIT_NOFILE, &none);
    int told = runs_another(id, base::RemoteAddress{1}) ? 10 : 0;
    for (const std::function<void()>& look : std::vector<std::function<void()>>{
             [&] { (void)list_tasks(self); }, [&] { (void)list_processes(); },
             [&] { (void)read_stat(self); }, [&] { (void)read_status(self); },
             [&] { (void)read_maps(self); }, [&] { (void)has_ended({.pid = self}); }}) {
      try {
        look();
      } catch (const base::SystemError& error) {
        told += error.code() == EMFILE ? 1 : 0;
      } catch (const base::Error&) {
        break;
      }
    }
    ::_exit(told);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 6);
}

TEST(HasEnded, TakesProof) {
  const auto self = read_process_id(Pid{::getpid()}).value();
  EXPECT_FALSE(has_ended(self));
  EXPECT_TRUE(has_ended({.pid = self.pid, .start_time = self.start_time + 1}));
  EXPECT_TRUE(has_ended({.pid = Pid{0x7fffffff}, .start_time = 1}));
}

TEST(RunsAnother, TakesProof) {
  const Pid self{::getpid()};
  const auto id = read_process_id(self).value();
  const auto begin = read_stat(self).value().stack_begin;
  EXPECT_FALSE(runs_another(id, begin));
  EXPECT_TRUE(runs_another(id, begin + 16));
  EXPECT_FALSE(runs_another(id, {})) << "unknown";
  EXPECT_FALSE(runs_another({.pid = self, .start_time = id.start_time + 1}, begin + 16));
  EXPECT_FALSE(runs_another({.pid = Pid{0x7fffffff}, .start_time = 1}, begin)) << "it has ended";
}

TEST(Cmdline, KeepsEmptyArguments) {
  EXPECT_THAT(parse_cmdline(std::string_view{"a\0\0b c\0", 7}), ElementsAre("a", "", "b c"));
  EXPECT_THAT(parse_cmdline("a"), ElementsAre("a"));
  EXPECT_THAT(parse_cmdline(""), IsEmpty());
  EXPECT_THAT(*read_cmdline(Pid{::getpid()}), testing::Not(IsEmpty()));
}

TEST(Environ, GivesTheValueOfThatNameOnly) {
  constexpr std::string_view kText{"XA=1\0A=2=3\0AB=4\0E=\0", 20};
  EXPECT_EQ(parse_environ_value(kText, "A"), "2=3");
  EXPECT_EQ(parse_environ_value(kText, "E"), "");
  EXPECT_EQ(parse_environ_value(kText, "B"), std::nullopt);
  EXPECT_EQ(parse_environ_value("", "A"), std::nullopt);
}

TEST(Auxv, StaysTheSameWithoutExec) {
  const auto first = read_auxv(Pid{::getpid()});
  ASSERT_TRUE(first.has_value());
  EXPECT_GE(first->size(), 32U);
  EXPECT_EQ(read_auxv(Pid{::getpid()}), first);
}

}  // namespace
}  // namespace pyinject::procfs
