#include "support/checked_target.hpp"

#include "procfs/status.hpp"
#include "support/asleep.hpp"
#include "support/patience.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include <sched.h>
#include <sys/resource.h>

namespace pyinject::test {

namespace {

// The first argument selects what the main thread does. A line on stdin requests the verdict.
constexpr const char* kProgram = R"(
import ctypes, sys, threading
doing = sys.argv[1]
asked = threading.Lock()
asked.acquire()
rounds = 0
wrong = 0
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
def check():
    global rounds, wrong
    text = ','.join(str(i * 0.5) for i in range(50))
    if fib(10) != 55 or sum(float(part) for part in text.split(',')) != 612.5:
        wrong += 1
    rounds += 1
def verdict():
    before = rounds
    check()
    print('right' if wrong == 0 and rounds == before + 1 else f'wrong {wrong}', flush=True)
def reader():
    while sys.stdin.readline():
        asked.release()
if doing in ('computes', 'lock'):
    threading.Thread(target=reader, daemon=True).start()
check()
print('ready', flush=True)
if doing == 'computes':
    while True:
        check()
        if asked.acquire(blocking=False):
            verdict()
elif doing == 'lock':
    while True:
        asked.acquire()
        verdict()
elif doing == 'reads':
    while sys.stdin.readline():
        verdict()
else:
    libc = ctypes.PyDLL(None)
    byte = ctypes.create_string_buffer(1)
    while libc.read(0, byte, 1) == 1:
        if byte.raw == b'\n':
            verdict()
)";

const char* argument(Doing doing) {
  switch (doing) {
    case Doing::kComputes:
      return "computes";
    case Doing::kWaitsForLock:
      return "lock";
    case Doing::kReads:
      return "reads";
    case Doing::kHoldsGil:
      break;
  }
  return "gil";
}

PythonOptions with_argument(Doing doing) {
  PythonOptions options;
  options.args = {argument(doing)};
  return options;
}

// Waits until PID is untraced and no longer in a ptrace stop: after its tracer has died, that takes
// a moment.
bool settles(base::Pid pid) {
  const auto deadline = base::Deadline::after(kPatience);
  while (!deadline.expired()) {
    const auto status = procfs::read_status(pid);
    if (!status || (status->tracer.value() == 0 && status->state != 't')) {
      return status.has_value();
    }
    ::sched_yield();
  }
  return false;
}

}  // namespace

CheckedTarget::CheckedTarget(const Interpreter& interpreter, Doing doing)
    : doing_{doing},
      root_{interpreter.root},
      process_{interpreter, kProgram, with_argument(doing)} {
  if (doing == Doing::kComputes) {
    // Nothing measures its speed: leave the processors to the tools.
    EXPECT_EQ(::setpriority(PRIO_PROCESS, static_cast<id_t>(pid().value()), 10), 0);
  } else {
    wait_until_asleep(pid());
  }
  before_ = take_snapshot(pid());
}

std::string CheckedTarget::map_path() const { return root_ + "/tmp/perf-" + pid_text() + ".map"; }

void CheckedTarget::activate_once() {
  attach_.activate(pid());
  attach_.deactivate(pid());
  before_ = take_snapshot(pid());
}

void CheckedTarget::expect_unharmed_and_off() {
  ASSERT_TRUE(settles(pid()));
  const auto now = attach_.detect(pid());
  EXPECT_EQ(now.state, python::TrampolineState::kOff) << name(now.state);
  process_.send_line("");
  EXPECT_EQ(process_.read_line(), "right");
  EXPECT_EQ(attach_.detect(pid()).state, python::TrampolineState::kOff) << "switched on later";
  // After an activation, the arena and the map remain; everything else is as before.
  EXPECT_THAT(
      differences(before_, take_snapshot(pid()), {.threads = true, .fds = false, .maps = false}),
      testing::IsEmpty());
  process_.expect_alive();
}

void CheckedTarget::expect_usable() {
  std::atomic<bool> done = false;
  std::thread activates{[&] {
    try {
      attach_.activate(pid());
    } catch (const base::Error& error) {
      ADD_FAILURE() << error.what();
    }
    done = true;
  }};
  while (doing_ == Doing::kHoldsGil && !done) {
    process_.send_line("");  // lets it run Python code for a moment
    EXPECT_EQ(process_.read_line(), "right");
  }
  activates.join();
  EXPECT_EQ(attach_.detect(pid()).state, python::TrampolineState::kOnByUs);
  attach_.deactivate(pid());
  process_.expect_alive();
}

}  // namespace pyinject::test
