// Failing attempts to stop a process lose no signal that arrives in the meantime.
#include "base/fault.hpp"
#include "procfs/stat.hpp"
#include "procfs/tasks.hpp"
#include "support/child_process.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/pids_group.hpp"
#include "tracee/stopped_process.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <sched.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

namespace pyinject::tracee {
namespace {

using base::Deadline;
using base::Step;
using std::chrono::milliseconds;

// Called once, after the first thread has been seized.
std::function<void()> g_on_seized;

void call_on_seized(Step step) {
  if (step == Step::kThreadSeized && g_on_seized) {
    std::exchange(g_on_seized, {})();
  }
}

pid_t g_to_kill = 0;

// tests/targets/numbered_signals.c
class SignalsAndStops : public testing::Test {
 protected:
  void SetUp() override {
    const auto line = child_.read_line(Deadline::after(test::kPatience)).value_or("");
    ASSERT_TRUE(line.starts_with("ready ")) << line;
    vfork_child_ = std::stoi(line.substr(6));
    const auto tasks = procfs::list_tasks(child_.pid());
    ASSERT_EQ(tasks.size(), 2U);
    ASSERT_EQ(tasks.front().value(), child_.pid().value());
    unstoppable_ = tasks.back();
    base::set_fault_handler(call_on_seized);
  }
  void TearDown() override {
    base::set_fault_handler(nullptr);
    g_on_seized = {};
  }

  void queue_signal(base::Tid thread, int number) const {
    siginfo_t info{};
    info.si_code = SI_QUEUE;
    info.si_pid = ::getpid();
    info.si_uid = ::getuid();
    info.si_value.sival_int = number;
    ASSERT_EQ(
        ::syscall(SYS_rt_tgsigqueueinfo, child_.pid().value(), thread.value(), SIGRTMIN + 3, &info),
        0)
        << errno;
  }

  void wait_until_stopped_by_tracer(base::Tid thread) const {
    const auto deadline = Deadline::after(test::kPatience);
    while (!deadline.expired()) {
      const auto stat = procfs::read_stat(child_.pid(), thread);
      if (stat && stat->state == 't') {
        return;
      }
      ::sched_yield();
    }
    ADD_FAILURE() << "thread " << thread.value() << " is in no ptrace stop";
  }

  // Ends state D of the unstoppable thread soon, while this thread waits.
  void let_it_stop_soon() const {
    g_to_kill = vfork_child_;
    ASSERT_NE(std::signal(SIGALRM, [](int) { (void)::kill(g_to_kill, SIGKILL); }), SIG_ERR);
    constexpr itimerval kSoon{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_usec = 100'000}};
    ASSERT_EQ(::setitimer(ITIMER_REAL, &kSoon, nullptr), 0);
  }

  // Fails at its deadline. BEFORE_THE_TRACER_ENDS runs in the tracing thread.
  void fail_to_stop(const std::function<void()>& before_the_tracer_ends = {}) const {
    const auto id = procfs::read_process_id(child_.pid()).value();
    on_tracer_thread([&] {
      {
        const auto attempt = StoppedProcess::stop(id, Deadline::after(milliseconds{5}));
        const auto* failure = std::get_if<StopFailure>(&attempt);
        ASSERT_TRUE(failure != nullptr && failure->why == StopFailure::Why::kDeadline);
      }
      if (before_the_tracer_ends) {
        before_the_tracer_ends();
      }
    });
  }

  std::optional<std::string> next_number() {
    return child_.read_line(Deadline::after(test::kPatience));
  }

  [[nodiscard]] base::Tid main_thread() const { return base::Tid{child_.pid().value()}; }

  test::ChildProcess child_{{test::targets_dir() + "/numbered_signals"}};
  base::Tid unstoppable_;
  pid_t vfork_child_ = 0;
};

TEST_F(SignalsAndStops, AFailedAttemptPassesOnTheSignalThatAThreadIsStoppedFor) {
  for (int number = 0; number < 20; ++number) {
    g_on_seized = [&] {
      queue_signal(main_thread(), number);
      wait_until_stopped_by_tracer(main_thread());
    };
    fail_to_stop();
    ASSERT_EQ(next_number(), std::to_string(number));
  }
}

TEST_F(SignalsAndStops, AFailedAttemptLeavesTheSignalOfAThreadThatItCouldNotStop) {
  queue_signal(unstoppable_, 1);
  fail_to_stop();
  ASSERT_EQ(::kill(vfork_child_, SIGKILL), 0);
  EXPECT_EQ(next_number(), "1");
}

TEST_F(SignalsAndStops, AThreadThatStopsAfterTheAttemptGetsItsSignalWhenTheTracerEnds) {
  queue_signal(unstoppable_, 2);
  fail_to_stop([&] {
    ASSERT_EQ(::kill(vfork_child_, SIGKILL), 0);
    wait_until_stopped_by_tracer(unstoppable_);
  });
  EXPECT_EQ(next_number(), "2");
}

// Without room for another thread, an attempt that fails while the thread may still stop takes
// none.
TEST_F(SignalsAndStops, AFailedAttemptDoesNotCostTheLastTracer) {
  const test::PidsGroup group;
  if (!group.valid()) {
    GTEST_SKIP() << "no pids controller at /sys/fs/cgroup/pids, or no right to use it";
  }
  const base::Pid self{::getpid()};
  prepare_tracer_threads();  // two
  group.add(self);
  group.allow_no_more();
  fail_to_stop();  // the thread never stops: costs one
  queue_signal(unstoppable_, 3);
  let_it_stop_soon();
  fail_to_stop();
  EXPECT_EQ(next_number(), "3");
  bool ran = false;
  EXPECT_NO_THROW(on_tracer_thread([&] {
    const auto id = procfs::read_process_id(child_.pid()).value();
    const auto attempt = StoppedProcess::stop(id, Deadline::after(test::kPatience));
    ran = std::holds_alternative<StoppedProcess>(attempt);
  }));
  EXPECT_TRUE(ran);
  group.release(self);
}

}  // namespace
}  // namespace pyinject::tracee
