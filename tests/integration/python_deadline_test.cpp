// Requests that cannot be carried out in time are withdrawn and never run later.
#include "base/file.hpp"
#include "base/text.hpp"
#include "integration/detection.hpp"
#include "integration/withdrawn.hpp"
#include "procfs/status.hpp"
#include "python/examine/mailbox.hpp"
#include "support/asleep.hpp"
#include "support/attach.hpp"
#include "support/covering.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/python_process.hpp"
#include "support/temp_dir.hpp"
#include "tracee/tracee_memory.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>

namespace pyinject::test {
namespace {

using python::Reason;
using python::Refusal;

class Deadlines : public testing::TestWithParam<Interpreter> {
 protected:
  // Expects that the activation fails, and returns the refusal.
  Refusal missed(base::Pid pid, std::chrono::milliseconds deadline) {
    auto result = attach_.try_activate(pid, {.owner = {}, .deadline = deadline});
    if (auto* refusal = std::get_if<Refusal>(&result)) {
      return *refusal;
    }
    throw base::Error{"it was activated"};
  }

  Attach attach_;
};

// Waits for the job-control stop: a detached thread runs briefly before it stops again.
bool comes_to_stand(base::Pid pid) {
  const auto deadline = base::Deadline::after(kPatience);
  while (!deadline.expired()) {
    if (procfs::read_status(pid)->state == 'T') {
      return true;
    }
    ::sched_yield();
  }
  return false;
}

// Whether it is in state D because of its child, not because it waits for a disk.
bool waits_for_vfork(base::Pid pid) {
  const auto children = base::read_file(fmt::format("/proc/{0}/task/{0}/children", pid.value()));
  const auto status = procfs::read_status(pid);
  return children && !children->empty() && status && status->state == 'D';
}

// Holds the GIL inside C (ctypes.PyDLL keeps it) until a byte arrives; then continues to work.
constexpr const char* kHoldsGilUntilTold = R"(
import ctypes, os, sys
libc = ctypes.PyDLL(None)
buffer = ctypes.create_string_buffer(1)
def work(n):
    return sum(i for i in range(n))
print('ready', flush=True)
while libc.read(0, buffer, 1) == 1:
    for _ in range(100):
        value = work(100)
    print(value, sys.is_stack_trampoline_active(), flush=True)
)";

TEST_P(Deadlines, AWithdrawnRequestNeverRuns) {
  PythonProcess holder{GetParam(), kHoldsGilUntilTold};
  wait_until_asleep(holder.pid());  // before the read it would simply be activated
  const auto refusal = withdrawn(attach_, holder.pid());
  EXPECT_EQ(refusal.reason, Reason::kDeadline);
  EXPECT_THAT(refusal.found, testing::HasSubstr("waits in read with the GIL held"));

  for (int i = 0; i < 3; ++i) {  // it runs Python code again, with our calls still queued
    holder.child().write("x");
    EXPECT_EQ(holder.read_line(), "4950 False");
  }
  EXPECT_EQ(attach_.detect(holder.pid()).state, python::TrampolineState::kOff);
}

TEST_P(Deadlines, TheNextSessionWorks) {
  PythonProcess holder{GetParam(), kHoldsGilUntilTold};
  wait_until_asleep(holder.pid());  // before the read it would simply be activated
  EXPECT_EQ(withdrawn(attach_, holder.pid()).reason, Reason::kDeadline);
  // A second request while the first is still queued revalidates the first.
  EXPECT_EQ(withdrawn(attach_, holder.pid()).reason, Reason::kDeadline);
  holder.child().write("x");
  EXPECT_EQ(holder.read_line(), "4950 False");

  // The interpreter waits in C again: release it while the activation waits.
  std::variant<python::Activation, Refusal> result;
  std::jthread activation{[&] { result = attach_.try_activate(holder.pid(), Attach::patient()); }};
  std::string answer = "4950 False";
  while (answer == "4950 False") {
    holder.child().write("x");
    answer = holder.read_line();
  }
  activation.join();
  EXPECT_EQ(answer, "4950 True");
  ASSERT_TRUE(std::holds_alternative<python::Activation>(result))
      << python::describe(std::get<Refusal>(result));
  attach_.deactivate(holder.pid());
  holder.child().write("x");
  EXPECT_EQ(holder.read_line(), "4950 False");
}

constexpr const char* kEcho = R"(
import sys
def answer(text):
    return text.strip() + ' ' + str(sys.is_stack_trampoline_active())
print('ready', flush=True)
for line in sys.stdin:
    print(answer(line), flush=True)
)";

TEST_P(Deadlines, AJobControlStopIsLeftAsItIs) {
  PythonProcess stopped{GetParam(), kEcho};
  stopped.child().signal(SIGSTOP);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(stopped.pid().value()), &info, WSTOPPED | WNOWAIT),
            0);

  const auto refusal = withdrawn(attach_, stopped.pid());
  EXPECT_EQ(refusal.reason, Reason::kDeadline);
  EXPECT_THAT(refusal.found, testing::HasSubstr("stopped by job control"));
  EXPECT_TRUE(comes_to_stand(stopped.pid()));

  stopped.child().signal(SIGCONT);
  stopped.send_line("one");
  EXPECT_EQ(stopped.read_line(), "one False");
  stopped.send_line("two");
  EXPECT_EQ(stopped.read_line(), "two False") << "the withdrawn request must not run now";
  attach_.activate(stopped.pid());
  stopped.send_line("three");
  EXPECT_EQ(stopped.read_line(), "three True");

  // A toggle neither needs the process to run nor makes it run.
  stopped.child().signal(SIGSTOP);
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(stopped.pid().value()), &info, WSTOPPED | WNOWAIT),
            0);
  attach_.deactivate(stopped.pid());
  EXPECT_TRUE(comes_to_stand(stopped.pid()));
  stopped.child().signal(SIGCONT);
  stopped.send_line("four");
  EXPECT_EQ(stopped.read_line(), "four False");
}

TEST_P(Deadlines, AThreadThatCannotBeStoppedIsNotWaitedForLong) {
  // A vfork parent is in state D until its child execs: here the child first opens a FIFO for
  // writing, which blocks until there is a reader.
  const SeenDirectory directory{GetParam()};
  PythonOptions options;
  options.args = {directory.seen("fifo")};
  PythonProcess parent{GetParam(), R"(
import os, sys
os.mkfifo(sys.argv[1])
print('ready', flush=True)
pid = os.posix_spawn(sys.executable, [sys.executable, '--version'], {},
                     file_actions=[(os.POSIX_SPAWN_OPEN, 5, sys.argv[1], os.O_WRONLY, 0)])
os.waitpid(pid, 0)
print('spawned', flush=True)
)",
                       options};
  const auto deadline = base::Deadline::after(kPatience);
  while (!waits_for_vfork(parent.pid()) && !deadline.expired()) {
    ::sched_yield();
  }
  ASSERT_TRUE(waits_for_vfork(parent.pid())) << "the target did not reach state D";
  const auto refusal = missed(parent.pid(), std::chrono::milliseconds{300});
  EXPECT_EQ(refusal.reason, Reason::kStopDeadline);
  EXPECT_THAT(refusal.found, testing::HasSubstr("in state D"));
  const base::UniqueFd reader{::open(directory.here("fifo").c_str(), O_RDONLY | O_CLOEXEC)};
  EXPECT_TRUE(reader.valid());
  while (parent.read_line() != "spawned") {  // its child prints its version first
  }
  EXPECT_EQ(parent.child().wait(base::Deadline::after(kPatience)), ExitStatus{});
}

TEST_P(Deadlines, ATimedWaitThatWasInterruptedBeforeIsRecognised) {
  // After SIGSTOP and SIGCONT, a timed futex, poll or nanosleep continues as restart_syscall. A
  // call into a thread that waits in a futex would deadlock it.
  for (const char* wait : {"lock.acquire(timeout=600)", "select.poll().poll(600000)"}) {
    PythonProcess waiter{GetParam(), std::string{R"(
import os, select, sys, threading
lock = threading.Lock()
lock.acquire()
def end():
    sys.stdin.readline()
    print(sys.is_stack_trampoline_active(), flush=True)
    os._exit(0)
threading.Thread(target=end).start()
print('ready', flush=True)
)"} + wait};
    wait_until_asleep(waiter.pid());
    waiter.child().signal(SIGSTOP);
    siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(waiter.pid().value()), &info, WSTOPPED | WNOWAIT),
              0);
    waiter.child().signal(SIGCONT);
    wait_until_asleep(waiter.pid());
    attach_.activate(waiter.pid());
    waiter.send_line("end");
    EXPECT_EQ(waiter.read_line(), "True") << wait;
  }
}

// The main thread's stack and instruction pointers in its system call. The call itself may have
// become restart_syscall.
std::string place_of_sleep(base::Pid pid) {
  wait_until_asleep(pid);
  const auto call = base::read_file(fmt::format("/proc/{}/syscall", pid.value())).value_or("");
  const auto words = base::split(base::trim(call), ' ');
  return words.size() < 3 ? "?" : fmt::format("{} {}", words[words.size() - 2], words.back());
}

TEST_P(Deadlines, ACExtensionsTimedWaitIsNotCutShort) {
  // Called by a library other than CPython: EINTR would be a result it has never seen. With the GIL
  // (PyDLL) and without it (CDLL). The test's signal ends each wait; its value shows that it had
  // not timed out.
  for (const std::string library : {"CDLL", "PyDLL"}) {
    for (const std::string wait : {"poll(None, 0, 600000)", "usleep(600000000)", "sleep(600)"}) {
      SCOPED_TRACE(library + " " + wait);
      PythonProcess waiter{GetParam(), "import ctypes, signal, sys\nlibc = ctypes." + library +
                                           R"((None)
signal.signal(signal.SIGUSR1, lambda *ignored: None)
print('ready', flush=True)
value = libc.)" + wait + R"(
print(value != 0, flush=True)
sys.stdin.readline()
)"};
      const auto place = place_of_sleep(waiter.pid());
      const auto refusal = withdrawn(attach_, waiter.pid(), std::chrono::milliseconds{200});
      EXPECT_EQ(refusal.reason, Reason::kDeadline);
      EXPECT_THAT(refusal.found, testing::HasSubstr("waits in"));
      EXPECT_EQ(place_of_sleep(waiter.pid()), place);
      EXPECT_EQ(waiter.child().read_line(base::Deadline::after({})), std::nullopt);
      waiter.child().signal(SIGUSR1);
      EXPECT_EQ(waiter.read_line(), "True");
    }
  }
}

// The request is made while the main thread holds the GIL in C; at the deadline, which leaves a
// busy machine time to get there, the process cannot be stopped any more.
TEST_P(Deadlines, AWithdrawnRequestNeverRunsAlsoWhereNoStopCameAbout) {
  if (!GetParam().root.empty()) {
    GTEST_SKIP() << "this build's library cannot be loaded in a chroot";
  }
  const TempDir directory;
  PythonOptions options;
  options.args = {targets_dir() + "/vfork_when_told.so", directory / "fifo"};
  ASSERT_EQ(::mkfifo(options.args[1].c_str(), 0600), 0);
  PythonProcess parent{GetParam(), R"(
import ctypes, sys
hold = ctypes.PyDLL(sys.argv[1]).vfork_when_told
print('ready', flush=True)
result = hold(sys.argv[2].encode())
for _ in range(10000):
    result += 0
print(result, sys.is_stack_trampoline_active(), flush=True)
sys.stdin.read()
)",
                       options};
  wait_until_asleep(parent.pid());
  const auto target = attach_.detect(parent.pid());
  std::optional<Refusal> refusal;
  std::thread activates{[&] { refusal = missed(parent.pid(), std::chrono::seconds{10}); }};
  const tracee::TraceeMemory memory{parent.pid()};
  const auto deadline = base::Deadline::after(kPatience);
  const auto requested = [&] {
    const auto mailbox = python::read_mailbox(memory, target.addresses.mailbox);
    return mailbox && mailbox->requested > mailbox->done;
  };
  while (!requested() && !deadline.expired()) {
    ::sched_yield();
  }
  parent.child().write("x");
  activates.join();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->reason, Reason::kDeadline);
  EXPECT_EQ(procfs::read_status(parent.pid())->state, 'D') << "the process could be stopped";
  const base::UniqueFd reader{::open(options.args[1].c_str(), O_RDONLY | O_CLOEXEC)};
  EXPECT_TRUE(reader.valid());
  EXPECT_EQ(parent.read_line(), "0 False");
  EXPECT_EQ(attach_.detect(parent.pid()).state, python::TrampolineState::kOff);
}

COVER(Deadlines, kEveryVersion);
INSTANTIATE_TEST_SUITE_P(Pythons, Deadlines,
                         testing::ValuesIn(interpreters({.each_version = Prefer::kChrooted})),
                         InterpreterName{});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Deadlines);

}  // namespace
}  // namespace pyinject::test
