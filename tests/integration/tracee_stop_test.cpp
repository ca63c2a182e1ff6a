// Stops and their end, with processes other than Python.
#include "procfs/stat.hpp"
#include "procfs/tasks.hpp"
#include "pyinject/base/error.hpp"
#include "support/child_process.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "tracee/interruptible_wait.hpp"
#include "tracee/stopped_process.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <set>

#include <sched.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pyinject::tracee {
namespace {

using base::Deadline;

test::ChildProcess echo_signals() {
  return test::ChildProcess{{test::targets_dir() + "/echo_signals"}};
}

base::ProcessId identity(base::Pid pid) { return procfs::read_process_id(pid).value(); }

TEST(StoppedProcess, ASignalThatArrivesMeanwhileIsDeliveredOnce) {
  auto child = echo_signals();
  ASSERT_EQ(child.read_line(Deadline::after(test::kPatience)), "ready");
  for (int i = 0; i < 20; ++i) {
    child.signal(SIGUSR1);
    on_tracer_thread([&] {
      const auto stopped =
          StoppedProcess::stop(identity(child.pid()), Deadline::after(test::kPatience));
      EXPECT_TRUE(std::holds_alternative<StoppedProcess>(stopped));
    });
    ASSERT_EQ(child.read_line(Deadline::after(test::kPatience)), "got") << i;
  }
  child.close_stdin();
  EXPECT_TRUE(child.wait(Deadline::after(test::kPatience)));
  EXPECT_EQ(child.read_line(Deadline::after(test::kPatience)), std::nullopt) << "not twice";
}

TEST(StoppedProcess, ASignalIsNotLostWhenTheTracerDies) {
  auto child = echo_signals();
  ASSERT_EQ(child.read_line(Deadline::after(test::kPatience)), "ready");
  const pid_t target = child.pid().value();
  const pid_t tracer = ::fork();
  if (tracer == 0) {
    // Ends at the worst moment: it has seen the signal but not passed it on.
    int status = 0;
    const bool seen = ::ptrace(PTRACE_SEIZE, target, 0L, 0L) == 0 && ::kill(target, SIGUSR1) == 0 &&
                      InterruptibleWait{Deadline::after(test::kPatience)}.wait(
                          base::Tid{target}, status) == Waited::kChanged;
    ::kill(::getpid(), seen ? SIGKILL : SIGABRT);
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(tracer, &status, 0), tracer);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_EQ(child.read_line(Deadline::after(test::kPatience)), "got");
}

TEST(StoppedProcess, TheEndOfAChildIsLeftToItsParent) {
  auto child = echo_signals();
  ASSERT_EQ(child.read_line(Deadline::after(test::kPatience)), "ready");
  on_tracer_thread([&] {
    const base::Tid first{child.pid().value()};
    int status = 0;
    ASSERT_EQ(::ptrace(PTRACE_SEIZE, first.value(), 0L, 0L), 0);
    child.signal(SIGKILL);
    EXPECT_EQ(InterruptibleWait{Deadline::after(test::kPatience)}.wait(first, status),
              Waited::kChanged);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  });
  EXPECT_EQ(child.wait(Deadline::after(test::kPatience)),
            (test::ExitStatus{.code = 0, .signal = 9}));
}

TEST(StoppedProcess, ThreadsBornMeanwhileStandToo) {
  test::ChildProcess mill{{test::targets_dir() + "/thread_mill"}};
  ASSERT_EQ(mill.read_line(Deadline::after(test::kPatience)), "ready");
  for (int i = 0; i < 50; ++i) {
    on_tracer_thread([&] {
      const auto stopped =
          StoppedProcess::stop(identity(mill.pid()), Deadline::after(test::kPatience));
      ASSERT_TRUE(std::holds_alternative<StoppedProcess>(stopped));
      std::set<base::Tid> standing;
      for (const auto& thread : std::get<StoppedProcess>(stopped).threads()) {
        standing.insert(thread.tid);
      }
      for (const auto tid : procfs::list_tasks(mill.pid())) {
        const auto stat = procfs::read_stat(mill.pid(), tid);
        // A thread that has exited remains listed for a moment.
        const char state = stat ? stat->state : 'X';
        EXPECT_EQ(state == 'Z' ? 'X' : state, standing.contains(tid) ? 't' : 'X') << tid.value();
      }
    });
  }
}

TEST(StoppedProcess, AnotherProcessIsNotStopped) {
  auto child = echo_signals();
  ASSERT_EQ(child.read_line(Deadline::after(test::kPatience)), "ready");
  auto id = identity(child.pid());
  ++id.start_time;  // as if the pid had been reused
  on_tracer_thread([&] {
    const auto stopped = StoppedProcess::stop(id, Deadline::after(test::kPatience));
    ASSERT_TRUE(std::holds_alternative<StopFailure>(stopped));
    EXPECT_EQ(std::get<StopFailure>(stopped).why, StopFailure::Why::kGone);
  });
}

TEST(StoppedProcess, TheTracersPriorityEndsWithTheStop) {
  auto child = echo_signals();
  ASSERT_EQ(child.read_line(Deadline::after(test::kPatience)), "ready");
  on_tracer_thread([&] {
    cpu_set_t before;
    cpu_set_t after;
    ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
    auto stopped = StoppedProcess::stop(identity(child.pid()), Deadline::after(test::kPatience));
    ASSERT_TRUE(std::holds_alternative<StoppedProcess>(stopped));
    std::get<StoppedProcess>(stopped).release();
    EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER);
    ASSERT_EQ(::sched_getaffinity(0, sizeof after, &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
  });
}

TEST(StoppedProcess, AProcessThatHasEndedIsGone) {
  test::ChildProcess child{{"true"}};
  const auto id = identity(child.pid());
  ASSERT_TRUE(child.wait(Deadline::after(test::kPatience)));
  on_tracer_thread([&] {
    const auto stopped = StoppedProcess::stop(id, Deadline::after(test::kPatience));
    ASSERT_TRUE(std::holds_alternative<StopFailure>(stopped));
    EXPECT_EQ(std::get<StopFailure>(stopped).why, StopFailure::Why::kGone);
  });
}

TEST(OnTracerThread, PassesExceptionsOn) {
  EXPECT_THROW(on_tracer_thread([] { throw base::Error{"x"}; }), base::Error);
}

}  // namespace
}  // namespace pyinject::tracee
