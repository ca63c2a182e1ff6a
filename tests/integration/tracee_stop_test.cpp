// Stops and their end, on processes that have nothing to do with Python.
#include "pyinject/base/error.hpp"
#include "pyinject/tracee/stopped_process.hpp"
#include "support/child_process.hpp"
#include "support/paths.hpp"
#include "tracee/interruptible_wait.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pyinject::tracee {
namespace {

using base::Deadline;
using std::chrono::seconds;

test::ChildProcess echo_signals() {
  return test::ChildProcess{{test::targets_dir() + "/echo_signals"}};
}

TEST(StoppedProcess, ASignalThatArrivesMeanwhileIsDeliveredOnce) {
  auto child = echo_signals();
  ASSERT_EQ(child.read_line(Deadline::after(seconds{10})), "ready");
  for (int i = 0; i < 20; ++i) {
    child.signal(SIGUSR1);
    on_tracer_thread([&] {
      const auto stopped = StoppedProcess::stop(child.pid(), Deadline::after(seconds{10}));
      EXPECT_TRUE(std::holds_alternative<StoppedProcess>(stopped));
    });
    ASSERT_EQ(child.read_line(Deadline::after(seconds{10})), "got") << i;
  }
  child.close_stdin();
  EXPECT_TRUE(child.wait(Deadline::after(seconds{10})));
  EXPECT_EQ(child.read_line(Deadline::after(seconds{10})), std::nullopt) << "not twice";
}

TEST(StoppedProcess, ASignalIsNotLostWhenTheTracerDies) {
  auto child = echo_signals();
  ASSERT_EQ(child.read_line(Deadline::after(seconds{10})), "ready");
  const pid_t target = child.pid().value();
  const pid_t tracer = ::fork();
  if (tracer == 0) {
    // Ends at the worst moment: it has seen the signal and has not passed it on.
    int status = 0;
    const bool seen = ::ptrace(PTRACE_SEIZE, target, 0L, 0L) == 0 && ::kill(target, SIGUSR1) == 0 &&
                      wait_interruptibly(base::Tid{target}, status, Deadline::after(seconds{10})) ==
                          Waited::kChanged;
    ::kill(::getpid(), seen ? SIGKILL : SIGABRT);
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(tracer, &status, 0), tracer);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_EQ(child.read_line(Deadline::after(seconds{10})), "got");
}

TEST(StoppedProcess, AProcessThatHasEndedIsGone) {
  test::ChildProcess child{{"true"}};
  const auto pid = child.pid();
  ASSERT_TRUE(child.wait(Deadline::after(seconds{10})));
  on_tracer_thread([&] {
    const auto stopped = StoppedProcess::stop(pid, Deadline::after(seconds{10}));
    ASSERT_TRUE(std::holds_alternative<StopFailure>(stopped));
    EXPECT_EQ(std::get<StopFailure>(stopped).why, StopFailure::Why::kGone);
  });
}

TEST(OnTracerThread, PassesExceptionsOn) {
  EXPECT_THROW(on_tracer_thread([] { throw base::Error{"x"}; }), base::Error);
}

}  // namespace
}  // namespace pyinject::tracee
