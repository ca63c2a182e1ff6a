// A main thread that waits in each of the ways Python programs wait: activation succeeds, and the
// interrupted call returns the right result at the right time.
#include "base/file.hpp"
#include "base/text.hpp"
#include "support/asleep.hpp"
#include "support/attach.hpp"
#include "support/covering.hpp"
#include "support/interpreters.hpp"
#include "support/patience.hpp"
#include "support/python_process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>

namespace pyinject::test {
namespace {

// A way to wait. SETUP runs before `ready`; WAIT is an expression whose value is printed. With
// NEEDS_WORD the wait ends when a line arrives on stdin, otherwise by itself after a time that the
// program checks; the program then waits again until it has been activated in one of its waits.
struct Wait {
  const char* name;
  const char* setup;
  const char* wait;
  const char* expected;
  bool needs_word;
};

constexpr std::array kWaits = std::to_array<Wait>({
    {"LockAcquire", "lock = threading.Lock(); lock.acquire(); on_word(lock.release)",
     "lock.acquire()", "True", true},
    {"LockAcquireTimeout", "lock = threading.Lock(); lock.acquire()",
     "timed(lambda: lock.acquire(timeout=0.7))", "(False, 'in time')", false},
    {"QueueGet", "import queue; q = queue.Queue(); on_word(lambda: q.put(42))", "q.get()", "42",
     true},
    {"ThreadJoin", "t = on_word(lambda: None)", "t.join()", "None", true},
    {"Read", "r, w = os.pipe(); on_word(lambda: os.write(w, b'x'))", "os.read(r, 10)", "b'x'",
     true},
    {"StdinReadline", "", "repr(sys.stdin.readline())", "'go\\n'", true},
    {"Select", "r, w = os.pipe(); on_word(lambda: os.write(w, b'x'))",
     "select.select([r], [], [])[0] == [r]", "True", true},
    {"SelectTimeout", "r, w = os.pipe()", "timed(lambda: select.select([r], [], [], 0.7)[0])",
     "([], 'in time')", false},
    {"Poll",
     "r, w = os.pipe(); p = select.poll(); p.register(r, 1); on_word(lambda: os.write(w, b'x'))",
     "p.poll() == [(r, 1)]", "True", true},
    {"PollTimeout", "r, w = os.pipe(); p = select.poll(); p.register(r, 1)",
     "timed(lambda: p.poll(700))", "([], 'in time')", false},
    {"Epoll",
     "r, w = os.pipe(); p = select.epoll(); p.register(r, 1); on_word(lambda: os.write(w, b'x'))",
     "p.poll() == [(r, 1)]", "True", true},
    {"Sleep", "", "timed(lambda: time.sleep(0.7))", "(None, 'in time')", false},
    {"Accept",
     "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen();"
     "on_word(lambda: socket.create_connection(s.getsockname()))",
     "s.accept()[0].fileno() > 0", "True", true},
    {"Recv", "a, b = socket.socketpair(); on_word(lambda: b.send(b'x'))", "a.recv(10)", "b'x'",
     true},
    {"Waitpid",
     "r, w = os.pipe(); pid = os.fork()\nif pid == 0: os.read(r, 1); os._exit(7)\n"
     "on_word(lambda: os.write(w, b'x'))",
     "os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])", "7", true},
    {"Asyncio",
     "import asyncio\nasync def main():\n"
     "  loop = asyncio.get_running_loop(); f = loop.create_future()\n"
     "  on_word(lambda: loop.call_soon_threadsafe(f.set_result, 5)); announce(); return await f\n"
     "announced_inside = True",
     "asyncio.run(main())", "5", true},
    {"Sigwait",
     "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1]);"
     "on_word(lambda: os.kill(os.getpid(), signal.SIGUSR1))",
     "int(signal.sigwait([signal.SIGUSR1])) == signal.SIGUSR1", "True", true},
});

std::string program(const Wait& wait, bool busy) {
  return std::string{R"(
import os, select, signal, socket, sys, threading, time
def on_word(action):
    def waiter():
        sys.stdin.readline()
        action()
    thread = threading.Thread(target=waiter, daemon=True)
    thread.start()
    return thread
def timed(call):
    # Early is wrong; late only when a machine under load cannot be the reason.
    begin = time.monotonic()
    value = call()
    took = time.monotonic() - begin
    return value, 'in time' if 0.7 <= took < 10.7 else f'after {took} s'
def announce():
    print('ready', flush=True)
announced_inside = False
)"} + wait.setup +
         (busy ? R"(
def burn():
    while True:
        sum(range(1000))
threading.Thread(target=burn, daemon=True).start()
)"
               : "\n") +
         "if not announced_inside: announce()\n" +
         (wait.needs_word ? "" : "sys.stdin.readline()\nprint('waits', flush=True)\n") +
         "while True:\n"
         "  value = " +
         wait.wait + "\n  if " +
         (wait.needs_word ? "True"
                          : "str(value) != \"" + std::string{wait.expected} +
                                "\" or sys.is_stack_trampoline_active()") +
         ": break\n"
         "print(value, sys.is_stack_trampoline_active(), flush=True)\n"
         "os._exit(0)\n";
}

struct BlockedThread {
  Interpreter interpreter;
  Wait wait;
  bool busy;
};

std::vector<BlockedThread> cases() {
  std::vector<BlockedThread> result;
  for (const auto& interpreter : interpreters({.each_version = Prefer::kChrooted})) {
    for (const auto& wait : kWaits) {
      for (const bool busy : {false, true}) {
        result.push_back({interpreter, wait, busy});
      }
    }
  }
  return result;
}

struct CaseName {
  template <typename Info>
  std::string operator()(const Info& info) const {
    return info.param.interpreter.name + "_" + info.param.wait.name +
           (info.param.busy ? "Busy" : "Idle");
  }
};

// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const BlockedThread& value, std::ostream* stream) {
  *stream << value.interpreter.name << " " << value.wait.name;
}

class Blocking : public testing::TestWithParam<BlockedThread> {};

TEST_P(Blocking, ActivatesAndTheCallReturnsAsItShould) {
  const auto& [interpreter, wait, busy] = GetParam();
  PythonProcess process{interpreter, program(wait, busy)};
  Attach attach;
  if (!wait.needs_word) {
    // The first detection takes the longest: do it before the wait starts.
    (void)attach.detect(process.pid());
    process.send_line("");
    ASSERT_EQ(process.read_line(), "waits");
  }
  wait_until_asleep(process.pid());
  attach.activate(process.pid());
  if (wait.needs_word) {
    process.send_line("go");
  }
  EXPECT_EQ(process.read_line(), std::string{wait.expected} + " True");
  EXPECT_EQ(process.child().wait(base::Deadline::after(kPatience)), ExitStatus{});
}

COVER(Blocking, kEveryVersion);
INSTANTIATE_TEST_SUITE_P(Pythons, Blocking, testing::ValuesIn(cases()), CaseName{});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Blocking);

}  // namespace
}  // namespace pyinject::test
