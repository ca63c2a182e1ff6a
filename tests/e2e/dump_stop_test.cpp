// `dump --stop` of real processes: exact, short, and harmless.
#include "base/fault.hpp"
#include "support/checked_target.hpp"
#include "support/child_process.hpp"
#include "support/guards.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/python_process.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <csignal>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::test {
namespace {

using base::Deadline;
using base::Step;
using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class DumpWithStop : public testing::TestWithParam<Interpreter> {
 protected:
  static RunResult stop_and_dump(base::Pid pid, const std::vector<std::string>& options = {}) {
    std::vector<std::string> argv{tool(), "dump", "--stop", "-p", std::to_string(pid.value())};
    argv.insert(argv.end(), options.begin(), options.end());
    return run(argv);
  }
  static json process_of(const RunResult& result) {
    EXPECT_EQ(result.status, ExitStatus{}) << result.err;
    return json::parse(result.out).at("processes").at(0);
  }
  // The names of the system calls of PROCESS, by the innermost function of the program itself.
  static std::map<std::string, std::string> calls_in(const json& process) {
    std::map<std::string, std::string> calls;
    for (const auto& thread : process.at("threads")) {
      for (const auto& frame : thread.at("frames")) {
        if (frame.at("file") == "<string>") {
          const auto& call = thread.at("system_call");
          calls[frame.at("function")] = call.is_null() ? "" : call.at("name").get<std::string>();
          break;
        }
      }
    }
    return calls;
  }
};

// The names of FRAMES, outermost first, without comprehensions, which 3.12 and later inline.
std::vector<std::string> functions_in(const json& frames) {
  std::vector<std::string> functions;
  for (const auto& frame : frames) {
    functions.push_back(frame.at("function"));
  }
  std::ranges::reverse(functions);
  return functions;
}

TEST_P(DumpWithStop, HasExactStacksUnderFullLoad) {
  PythonProcess python{GetParam(), R"(
import threading
def outer():
    while True:
        middle()
def middle():
    for i in range(3):
        inner(i)
def inner(i):
    for x in range(i):
        leaf(x)
def leaf(x):
    return x * x
threads = [threading.Thread(target=outer, daemon=True) for _ in range(3)]
for each in threads:
    each.start()
print('ready', flush=True)
outer()
)"};
  static constexpr std::array<std::string_view, 4> kChain{"outer", "middle", "inner", "leaf"};
  const auto all_work = [](const json& process) {
    return std::ranges::all_of(process.at("threads"), [](const json& thread) {
      return std::ranges::count(functions_in(thread.at("frames")), "outer") == 1;
    });
  };
  const auto deadline = Deadline::after(kPatience);
  while (!all_work(process_of(stop_and_dump(python.pid(), {"--json"})))) {
    ASSERT_FALSE(deadline.expired());
  }
  for (int i = 0; i < 20; ++i) {
    const auto process = process_of(stop_and_dump(python.pid(), {"--json"}));
    EXPECT_GT(process.at("stopped_us"), 0);
    EXPECT_EQ(process.at("stopped"), false);
    ASSERT_EQ(process.at("threads").size(), 4U);
    for (const auto& thread : process.at("threads")) {
      EXPECT_EQ(thread.at("settled"), true) << process.dump(1);
      EXPECT_EQ(thread.at("complete"), true) << process.dump(1);
      EXPECT_EQ(thread.at("ran_meanwhile"), false);
      EXPECT_NE(thread.at("state"), "traced");
      const auto functions = functions_in(thread.at("frames"));
      const auto first = std::ranges::find(functions, "outer");
      ASSERT_NE(first, functions.end()) << process.dump(1);
      EXPECT_TRUE(std::equal(first, functions.end(), kChain.begin())) << process.dump(1);
    }
  }
  const auto text = stop_and_dump(python.pid());
  EXPECT_THAT(text.out, testing::ContainsRegex("\n  stopped for [0-9]+\\.[0-9] ms\n"));
  EXPECT_THAT(text.out, Not(HasSubstr("...")));
  EXPECT_THAT(text.err, IsEmpty());
  python.expect_alive();
}

TEST_P(DumpWithStop, LetsInterruptedCallsGoOn) {
  PythonProcess python{GetParam(), R"(
import os, select, sys, threading, time
ends = []
readable, writable = os.pipe()
event = threading.Event()
def reads():
    os.read(readable, 1)
    ends.append('reads')
def polls():
    poll = select.poll()
    poll.register(readable)
    poll.poll(1000000)
    ends.append('polls')
def epolls():
    poll = select.epoll()
    poll.register(readable)
    poll.poll(1000)
    ends.append('epolls')
def waits():
    event.wait(1000)
    ends.append('waits')
def sleeps():
    time.sleep(1000)
    ends.append('sleeps')
threads = [threading.Thread(target=each, daemon=True) for each in (reads, polls, epolls, waits, sleeps)]
for each in threads:
    each.start()
print('ready', flush=True)
for line in sys.stdin:
    print(len(ends), flush=True)
    event.set()
    os.write(writable, b'xx')
    for each in threads[:4]:
        each.join()
    print(*sorted(ends), flush=True)
)"};
  const auto blocked = [](const std::map<std::string, std::string>& calls) {
    return calls.size() == 6 &&
           std::ranges::none_of(calls, [](const auto& one) { return one.second.empty(); });
  };
  // Repeats the dump until all threads are blocked: epoll_wait() fails after each stop, and CPython
  // calls it again.
  const auto dump_blocked = [&](const std::vector<std::string>& options) {
    std::vector<std::string> argv{tool(), "dump", "--json", "-p",
                                  std::to_string(python.pid().value())};
    argv.insert(argv.end(), options.begin(), options.end());
    const auto deadline = Deadline::after(kPatience);
    auto process = process_of(run(argv));
    while (!blocked(calls_in(process)) && !deadline.expired()) {
      process = process_of(run(argv));
    }
    return process;
  };
  const auto process = dump_blocked({"--stop"});
  const auto calls = calls_in(process);
  EXPECT_EQ(calls.at("reads"), "read");
  EXPECT_THAT(calls.at("polls"), HasSubstr("poll"));
  EXPECT_THAT(calls.at("epolls"), HasSubstr("epoll_"));
  EXPECT_EQ(calls.at("waits"), "futex");
  EXPECT_EQ(calls.at("sleeps"), "clock_nanosleep");
  for (const auto& thread : process.at("threads")) {
    EXPECT_EQ(thread.at("state"), "sleeping");
  }
  // The kernel continues some of them as restart_syscall(2).
  EXPECT_EQ(calls_in(dump_blocked({"--stop"})), calls);
  EXPECT_EQ(calls_in(dump_blocked({})), calls);
  python.send_line("");
  EXPECT_EQ(python.read_line(), "0");
  EXPECT_EQ(python.read_line(), "epolls polls reads waits");
}

INSTANTIATE_TEST_SUITE_P(Pythons, DumpWithStop,
                         testing::ValuesIn(interpreters({.only_read = true})), InterpreterName{});

// The interpreter does not matter.
class DumpKilledInItsStop : public testing::TestWithParam<Step> {
 protected:
  [[nodiscard]] static RunResult fail(const CheckedTarget& target, const char* action) {
    RunOptions options;
    options.child.env["PYINJECT_TEST_FAULT"] =
        fmt::format("{}:{}", static_cast<int>(GetParam()), action);
    return run({faulty_tool(), "dump", "--stop", "-p", target.pid_text()}, options);
  }
  static void expect_unharmed(CheckedTarget& target) {
    target.expect_unharmed_and_off();
    const auto again = run({tool(), "dump", "--stop", "-p", target.pid_text()});
    EXPECT_EQ(again.status, ExitStatus{}) << again.err;
    EXPECT_THAT(again.out, HasSubstr("  stopped for "));
    target.expect_unharmed_and_off();
  }
  Guards guards_;
};

TEST_P(DumpKilledInItsStop, LeavesTheProcessRunning) {
  CheckedTarget target{newest_interpreter(), Doing::kComputes};
  EXPECT_EQ(fail(target, "kill").status.signal, SIGKILL);
  expect_unharmed(target);
}

TEST_P(DumpKilledInItsStop, IsKilledByItsGuardIfItIsStopped) {
  CheckedTarget target{newest_interpreter(), Doing::kComputes};
  const auto result = fail(target, "stop");
  EXPECT_EQ(result.status.signal, SIGKILL);
  EXPECT_THAT(result.err, HasSubstr("keeps a process stopped"));
  expect_unharmed(target);
}

TEST(GuardOfADump, HasNothingToSwitchOff) {
  const Guards guards;
  CheckedTarget target{newest_interpreter(), Doing::kComputes};
  ChildProcess watch{
      {tool(), "dump", "--stop", "--json", "--watch", "20ms", "-p", target.pid_text()}};
  const auto deadline = base::Deadline::after(kPatience);
  ASSERT_TRUE(watch.read_line(deadline)) << watch.err();
  const auto guard = guard_of(watch.pid());
  ASSERT_TRUE(guard);
  ::kill(guard->pid.value(), SIGSTOP);  // it cannot exit in time
  watch.signal(SIGINT);
  EXPECT_EQ(watch.wait(deadline), ExitStatus{});
  EXPECT_THAT(watch.err(), IsEmpty());
  ::kill(guard->pid.value(), SIGCONT);
  EXPECT_TRUE(guard->ends());
  target.expect_unharmed_and_off();
}

INSTANTIATE_TEST_SUITE_P(Steps, DumpKilledInItsStop,
                         testing::Values(Step::kThreadSeized, Step::kThreadStopped,
                                         Step::kAllStopped),
                         [](const auto& each) {
                           return fmt::format("Step{}", static_cast<int>(each.param));
                         });

}  // namespace
}  // namespace pyinject::test
