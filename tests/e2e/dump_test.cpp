// `dump` of real processes, compared with what the programs know of themselves.
#include "e2e/bpf_recording.hpp"
#include "e2e/dumped_stacks.hpp"
#include "procfs/stat.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "support/asleep.hpp"
#include "support/child_process.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/pty_process.hpp"
#include "support/python_process.hpp"
#include "support/temp_dir.hpp"
#include "support/untouched.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/fanotify.h>

namespace pyinject::test {
namespace {

using base::Deadline;
using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

RunResult dump(base::Pid pid, const std::vector<std::string>& options = {}) {
  std::vector<std::string> argv{tool(), "dump", "-p", std::to_string(pid.value())};
  argv.insert(argv.end(), options.begin(), options.end());
  return run(argv);
}

// The only process in a dump of PID. Throws if there is none.
json dumped(base::Pid pid) { return json::parse(dump(pid, {"--json"}).out).at("processes").at(0); }

// The thread of PROCESS with innermost function FUNCTION, or null.
json thread_in(const json& process, const std::string& function) {
  for (const auto& thread : process.at("threads")) {
    const auto& frames = thread.at("frames");
    if (!frames.empty() && frames.at(0).at("function") == function) {
      return thread;
    }
  }
  return {};
}

// Repeats dumps of PID until CONDITION holds for one. Throws base::Error at the deadline.
template <typename Condition>
json dumped_when(base::Pid pid, Condition condition) {
  const auto deadline = Deadline::after(kPatience);
  while (true) {
    auto process = dumped(pid);
    if (condition(process)) {
      return process;
    }
    if (deadline.expired()) {
      throw base::Error{"no such dump: " + process.dump(1)};
    }
  }
}

bool comes_to_state(base::Pid pid, char state) {
  const auto deadline = Deadline::after(kPatience);
  while (!deadline.expired()) {
    const auto stat = procfs::read_stat(pid);
    if (stat && stat->state == state) {
      return true;
    }
    ::sched_yield();
  }
  return false;
}

void expect_own_stacks(const Interpreter& interpreter, int threads, int depth = 1000) {
  PythonProcess python{interpreter,
                       target_source("dumped.py"),
                       {.interpreter_args = {},
                        .args = {std::to_string(threads), std::to_string(depth)},
                        .child = {}}};
  const auto expected = read_stacks(python);
  const auto process = dumped_when(python.pid(), all_wait);
  EXPECT_EQ(expected.size(), static_cast<std::size_t>(threads) + 1);
  EXPECT_EQ(stacks_of(process), expected);
  for (const auto& thread : process.at("threads")) {
    EXPECT_FALSE(thread.at("python_id").is_null());
  }
}

class Dump : public testing::TestWithParam<Interpreter> {};

// The program stuck.py.
class StuckProgram {
 public:
  explicit StuckProgram(const Interpreter& interpreter)
      : python_{interpreter, target_source("stuck.py")} {
    const auto told = json::parse(python_.read_line());
    for (const auto& [name, tid] : told.items()) {
      names_[tid.get<long>()] = name;
    }
  }
  [[nodiscard]] base::Pid pid() const { return python_.pid(); }
  [[nodiscard]] std::set<std::set<std::string>> deadlocks(const json& process) const {
    std::set<std::set<std::string>> all;
    for (const auto& members : process.at("deadlocks")) {
      std::set<std::string> names;
      for (const auto& tid : members) {
        names.insert(names_.at(tid.get<long>()));
      }
      all.insert(names);
    }
    return all;
  }
  // By the threads' names.
  [[nodiscard]] std::map<std::string, json> waits(const json& process) const {
    std::map<std::string, json> all;
    for (const auto& thread : process.at("threads")) {
      const auto known = names_.find(thread.at("tid").get<long>());
      if (known != names_.end()) {
        EXPECT_EQ(thread.at("python_name"), known->second);
        all[known->second] = thread.at("waits_for");
      }
    }
    return all;
  }
  [[nodiscard]] std::string owner(const json& wait) const {
    return wait.at("owner").is_null() ? "" : names_.at(wait.at("owner").get<long>());
  }

 private:
  PythonProcess python_;
  std::map<long, std::string> names_;
};

const std::set<std::set<std::string>> kDeadlocks{
    {"red", "blue"}, {"one", "two", "three"}, {"left", "right"}, {"hen", "egg"}};

TEST_P(Dump, NamesDeadlocksAndTheOwnersOfLocks) {
  const StuckProgram program{GetParam()};
  const auto process = dumped_when(program.pid(), [&](const json& one) {
    const auto waits = program.waits(one);
    return program.deadlocks(one) == kDeadlocks && !waits.at("g\u00e9tter").is_null() &&
           !waits.at("waiter").is_null();
  });
  const auto waits = program.waits(process);
  EXPECT_EQ(waits.at("red").at("object"), "RLock");
  EXPECT_EQ(program.owner(waits.at("two")), "three");
  EXPECT_EQ(waits.at("left").at("object"), "Lock");
  EXPECT_EQ(waits.at("left").at("owner_is_inferred"), true);
  EXPECT_EQ(waits.at("g\u00e9tter").at("object"), "Queue");
  EXPECT_EQ(program.owner(waits.at("g\u00e9tter")), "");
  EXPECT_EQ(program.owner(waits.at("waiter")), "holder");
  const auto text = dump(program.pid()).out;
  EXPECT_THAT(
      text, AllOf(HasSubstr("  DEADLOCK of 2 threads:\n"), HasSubstr("  DEADLOCK of 3 threads:\n"),
                  HasSubstr("  probable DEADLOCK of 2 threads, as far as"),
                  HasSubstr("\"hen\" waits for the end of thread ")));
}

TEST_P(Dump, ShowsWhichTaskAwaitsWhich) {
  const StuckProgram program{GetParam()};
  const auto process =
      dumped_when(program.pid(), [](const json& one) { return one.at("tasks").size() == 7; });
  EXPECT_EQ(process.at("all_tasks"), true);
  std::map<std::string, json> tasks;
  std::map<std::string, std::string> names;
  for (const auto& task : process.at("tasks")) {
    tasks[task.at("name")] = task;
    names[task.at("id")] = task.at("name");
  }
  const auto awaiters = [&](const std::string& name) {
    std::vector<std::string> all;
    for (const auto& id : tasks.at(name).at("awaited_by")) {
      all.push_back(names.at(id));
    }
    return all;
  };
  EXPECT_THAT(awaiters("root"), IsEmpty());
  for (const auto* const number : {"0", "1"}) {
    EXPECT_THAT(awaiters(std::string{"middle-"} + number), ElementsAre("root"));
    EXPECT_THAT(awaiters(std::string{"leaf-"} + number),
                ElementsAre(std::string{"middle-"} + number));
  }
  const auto& frames = tasks.at("leaf-0").at("frames");
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames.at(0).at("function"), "sleep");
  EXPECT_EQ(frames.at(1).at("function"), "leaf");
  EXPECT_THAT(dump(program.pid()).out,
              AllOf(HasSubstr(": 7 tasks\n    task \"root\": pending\n"),
                    HasSubstr("\n      task \"middle-1\": pending, awaited by \"root\"\n"),
                    HasSubstr("\n        task \"leaf-1\": pending, awaited by \"middle-1\"\n"
                              "          sleep  ")));
}

TEST_P(Dump, NamesNoDeadlockWhereThereIsNone) {
  PythonProcess python{GetParam(), target_source("contended.py")};
  ChildProcess watch{
      {tool(), "dump", "--json", "--watch", "1ms", "-p", std::to_string(python.pid().value())}};
  const auto deadline = Deadline::after(kPatience);
  for (int i = 0; i < 100; ++i) {
    const auto line = watch.read_line(deadline);
    ASSERT_TRUE(line) << watch.err();
    const auto process = json::parse(*line).at("processes").at(0);
    ASSERT_FALSE(process.at("threads").empty());
    EXPECT_THAT(process.at("deadlocks"), IsEmpty()) << process.dump(1);
  }
  watch.signal(SIGINT);
  EXPECT_EQ(watch.wait(deadline), ExitStatus{}) << watch.err();
}

TEST_P(Dump, ShowsTheProgramsOwnStacksOfOneThread) { expect_own_stacks(GetParam(), 0); }

TEST_P(Dump, ShowsTheProgramsOwnStacksOfFiftyThreads) { expect_own_stacks(GetParam(), 50); }

TEST_P(Dump, ShowsTheProgramsOwnStacksOfFiveHundredThreads) { expect_own_stacks(GetParam(), 500); }

TEST_P(Dump, ShowsTheProgramsOwnStacksOfADeepRecursion) { expect_own_stacks(GetParam(), 2, 10000); }

TEST_P(Dump, LeavesTheProcessUntouched) {
  PythonProcess python{GetParam(),
                       target_source("dumped.py"),
                       {.interpreter_args = {}, .args = {"3", "1000"}, .child = {}}};
  wait_until_asleep(python.pid());
  const Untouched before{python.pid()};
  EXPECT_EQ(dump(python.pid()).status, ExitStatus{});
  EXPECT_THAT(before.differences(), IsEmpty());
}

TEST_P(Dump, NamesTheInterpretersOfAThread) {
  PythonProcess python{GetParam(), R"(
import importlib, os, threading
try:
    interpreters = importlib.import_module('_interpreters')
    run = interpreters.exec
except ImportError:
    interpreters = importlib.import_module('_xxsubinterpreters')
    run = interpreters.run_string
def outside():
    run(interpreters.create(), """
import os
def inside():
    os.write(1, b'ready\\n')
    os.read(0, 1)
inside()
""")
threading.Thread(target=outside, daemon=True).start()
threading.Event().wait()
)"};
  const auto process = dumped_when(python.pid(), [](const json& found) {
    const auto thread = thread_in(found, "inside");
    return !thread.is_null() && thread.at("system_call").is_object();
  });
  const auto thread = thread_in(process, "inside");
  EXPECT_EQ(thread.at("interpreters"), json({0, 1}));
  EXPECT_EQ(thread.at("frames").at(2).at("function"), "outside");
  EXPECT_THAT(dump(python.pid()).out, HasSubstr(" (interpreters 0, 1): in read(fd 0: "));
}

TEST_P(Dump, NamesThePeerOfASocketRead) {
  PythonProcess python{GetParam(), R"(
import os, socket, sys, threading
server = socket.create_server(('127.0.0.1', 0))
client = socket.create_connection(server.getsockname())
threading.Thread(target=lambda: (sys.stdin.readline(), os._exit(0)), daemon=True).start()
print('ready', client.fileno(), client.getsockname()[1], server.getsockname()[1], sep='\n', flush=True)
def receives():
    client.recv(1)
receives()
)"};
  const auto fd = std::stoi(python.read_line());
  const auto client = python.read_line();
  const auto server = python.read_line();
  wait_until_asleep(python.pid());
  const auto thread = thread_in(dumped(python.pid()), "receives");
  const auto peer = fmt::format("TCP 127.0.0.1:{} -> 127.0.0.1:{}", client, server);
  EXPECT_EQ(thread.at("state"), "sleeping");
  EXPECT_EQ(thread.at("system_call").at("name"), "recvfrom");
  EXPECT_EQ(thread.at("system_call").at("fd"), fd);
  EXPECT_EQ(thread.at("system_call").at("file"), peer);
  EXPECT_FALSE(thread.at("kernel").empty());
  EXPECT_THAT(dump(python.pid()).out, HasSubstr(fmt::format("in recvfrom(fd {}: {}) [", fd, peer)));
}

TEST_P(Dump, NamesTheFileAndTheSleep) {
  PythonProcess python{GetParam(), R"(
import os, threading, time
def sleeps():
    time.sleep(10000)
def reads():
    os.read(0, 1)
threading.Thread(target=sleeps, daemon=True).start()
print('ready', flush=True)
reads()
)"};
  wait_until_asleep(python.pid());
  const auto process = dumped_when(python.pid(), [](const json& found) {
    const auto sleeping = thread_in(found, "sleeps");
    return !sleeping.is_null() && sleeping.at("system_call").is_object();
  });
  const auto sleeping = thread_in(process, "sleeps").at("system_call");
  EXPECT_EQ(sleeping.at("name"), "clock_nanosleep");
  EXPECT_THAT(sleeping.at("arguments").at(0).get<std::string>(), testing::EndsWith(" s left"));
  const auto reading = thread_in(process, "reads").at("system_call");
  EXPECT_EQ(reading.at("name"), "read");
  EXPECT_EQ(reading.at("fd"), 0);
  EXPECT_THAT(reading.at("file").get<std::string>(), testing::StartsWith("pipe:["));
}

TEST_P(Dump, NamesAStoppedProcessAndShowsItsStack) {
  PythonProcess python{GetParam(), R"(
import os
def reads():
    os.read(0, 1)
print('ready', flush=True)
reads()
)"};
  wait_until_asleep(python.pid());
  python.child().signal(SIGSTOP);
  ASSERT_TRUE(comes_to_state(python.pid(), 'T'));
  const auto result = dump(python.pid());
  EXPECT_EQ(result.status, ExitStatus{});
  EXPECT_THAT(
      result.out,
      AllOf(HasSubstr(fmt::format("  stopped by a signal: kill -CONT {} continues it\n",
                                  python.pid().value())),
            HasSubstr(": stopped, in read(fd 0: pipe:["), HasSubstr("\n    reads  <string>:4\n")));
  const auto process = dumped(python.pid());
  EXPECT_EQ(process.at("stopped"), true);
  EXPECT_EQ(process.at("threads").at(0).at("state"), "stopped");
}

// The variables of the innermost function FUNCTION in a thread or task ONE.
std::map<std::string, std::string> locals_in(const json& one, const std::string& function) {
  std::map<std::string, std::string> values;
  for (const auto& frame : one.at("frames")) {
    if (frame.at("function") == function && values.empty()) {
      for (const auto& variable : frame.at("locals")) {
        values[variable.at("name")] = variable.at("value");
      }
    }
  }
  return values;
}

TEST_P(Dump, ShowsTheValuesOfVariables) {
  PythonProcess python{GetParam(), target_source("variables.py")};
  const auto expected = json::parse(python.read_line());
  wait_until_asleep(python.pid());
  for (const auto* const stop : {"", "--stop"}) {
    std::vector<std::string> options{"--locals", "--json"};
    if (*stop != '\0') {
      options.emplace_back(stop);
    }
    const auto process = json::parse(dump(python.pid(), options).out).at("processes").at(0);
    auto values = locals_in(process.at("threads").at(0), "function");
    EXPECT_GE(expected.size(), 60U);
    for (const auto& [name, value] : expected.items()) {
      EXPECT_EQ(values[name], value.get<std::string>()) << name;
    }
    EXPECT_THAT(values, Not(testing::Contains(testing::Key("unbound"))));
  }
  EXPECT_THAT(dump(python.pid(), {"--locals"}).out,
              AllOf(HasSubstr("        small: 7\n"), HasSubstr("        quotes: \"it's\"\n")));
  EXPECT_THAT(dump(python.pid()).out, Not(HasSubstr("        small: 7\n")));
}

TEST_P(Dump, ShowsTheVariablesOfTasks) {
  PythonProcess python{GetParam(),
                       target_source("variables.py"),
                       {.interpreter_args = {}, .args = {"tasks"}, .child = {}}};
  (void)python.read_line();
  wait_until_asleep(python.pid());
  const auto process =
      json::parse(dump(python.pid(), {"--locals", "--json"}).out).at("processes").at(0);
  std::set<std::string> labels;
  for (const auto& task : process.at("tasks")) {
    const auto values = locals_in(task, "crowd.<locals>.handle");
    if (const auto label = values.find("label"); label != values.end()) {
      labels.insert(label->second + " " + values.at("n"));
    }
  }
  EXPECT_THAT(labels, ElementsAre("'conn-0' 0", "'conn-1' 1", "'conn-2' 2"));
}

TEST_P(Dump, HostileNamesAreHarmless) {
  PythonProcess python{GetParam(), R"(
import ctypes, os
def pause():
    os.read(0, 1)
name = '\x1b[31mred\npid 1: forged\x07'
pause.__code__ = pause.__code__.replace(co_qualname=name, co_filename='/tmp/\x1b]0;title\x07\r.py')
open('/proc/self/comm', 'w').write('\x1b[2Jx') if os.path.exists('/proc/self/comm') else None
print('ready', flush=True)
pause()
)"};
  wait_until_asleep(python.pid());
  const auto result = dump(python.pid());
  EXPECT_EQ(result.status, ExitStatus{});
  EXPECT_THAT(
      result.out,
      HasSubstr("    \\x1b[31mred\\x0apid 1: forged\\x07  /tmp/\\x1b]0;title\\x07\\x0d.py:4\n"));
  const auto control = [](char byte) {
    return byte != '\n' && static_cast<unsigned char>(byte) < 0x20;
  };
  EXPECT_TRUE(std::ranges::none_of(result.out, control));
  const auto text = dump(python.pid(), {"--json"}).out;
  EXPECT_TRUE(json::accept(text));
  EXPECT_TRUE(std::ranges::none_of(text, control));
}

INSTANTIATE_TEST_SUITE_P(Pythons, Dump, testing::ValuesIn(interpreters({.only_read = true})),
                         InterpreterName{});

class DumpOfC : public testing::TestWithParam<Interpreter> {};

TEST_P(DumpOfC, NamesTheHolderOfTheGilAndWhoWaitsForIt) {
  if (GetParam().free_threaded) {
    GTEST_SKIP() << "it has no GIL";
  }
  // PyDLL keeps the GIL during the call.
  PythonProcess python{GetParam(), R"(
import ctypes, os, threading
read = ctypes.PyDLL(None).read
buffer = ctypes.create_string_buffer(1)
def holds():
    os.write(1, b'ready\n')
    read(0, buffer, 1)
threading.Thread(target=holds, daemon=True).start()
while True:
    pass
)"};
  const auto process = dumped_when(python.pid(), [](const json& found) {
    const auto holder = thread_in(found, "holds");
    return !holder.is_null() && holder.at("gil") == "held" &&
           holder.at("system_call").is_object() && found.at("threads").at(0).at("gil") == "awaited";
  });
  const auto holder = thread_in(process, "holds");
  EXPECT_EQ(holder.at("system_call").at("name"), "read");
  EXPECT_EQ(process.at("threads").at(0).at("gil_holder"), holder.at("tid"));
  EXPECT_THAT(dump(python.pid()).out, HasSubstr(": holds the GIL, in read(fd 0: pipe:["));
}

TEST_P(DumpOfC, ListsTheThreadsThatAMainThreadLeft) {
  PythonProcess python{GetParam(), R"(
import ctypes, os, sys, threading
def work():
    print('ready', flush=True)
    sys.stdin.read()
    os._exit(0)
threading.Thread(target=work).start()
ctypes.CDLL(None).syscall(60, 0)
)"};
  ASSERT_TRUE(comes_to_state(python.pid(), 'Z'));
  dumped_when(python.pid(), [](const json& found) {
    const auto& threads = found.at("threads");
    return threads.size() == 2 && threads.at(1).at("system_call").is_object() &&
           threads.at(1).at("system_call").at("fd") == 0;
  });
  const auto result = dump(python.pid());
  EXPECT_EQ(result.status, ExitStatus{125});
  EXPECT_THAT(result.err, HasSubstr("(main_thread_gone)"));
  EXPECT_THAT(result.out, AllOf(HasSubstr("  its main thread has exited\n"),
                                HasSubstr(": zombie\n"), HasSubstr(": in read(fd 0: pipe:[")));
}

INSTANTIATE_TEST_SUITE_P(Pythons, DumpOfC,
                         testing::ValuesIn(interpreters({.only_read = true,
                                                         .module = "ctypes",
                                                         .each_version = Prefer::kLoader})),
                         InterpreterName{});

class DumpOfBusy : public testing::TestWithParam<Build> {};

// One thread calls functions all the time, another one waits.
TEST_P(DumpOfBusy, HasOnlyPossibleStacks) {
  const auto interpreter = find_build(GetParam());
  if (!interpreter) {
    GTEST_SKIP() << "there is no such interpreter";
  }
  PythonProcess python{*interpreter,
                       R"(
import threading
never = threading.Lock()
never.acquire()
def outer():
    while True:
        middle()
def middle():
    for i in range(3):
        inner(i)
def inner(i):
    return [leaf(x) for x in range(i)]
def leaf(x):
    return x * x
def waits():
    never.acquire()
threading.Thread(target=waits, daemon=True).start()
print('ready', flush=True)
outer()
)",
                       {.interpreter_args = {}, .args = {}, .child = environment_of(GetParam())}};
  static constexpr std::array<std::string_view, 5> kChain{"<module>", "outer", "middle", "inner",
                                                          "leaf"};
  dumped_when(python.pid(), [](const json& found) { return !thread_in(found, "waits").is_null(); });
  int uncertain = 0;
  for (int i = 0; i < 50; ++i) {
    const auto process = dumped(python.pid());
    for (const auto& thread : process.at("threads")) {
      std::vector<std::string> functions;
      for (const auto& frame : thread.at("frames")) {
        functions.push_back(frame.at("function"));
      }
      std::ranges::reverse(functions);
      if (thread.at("tid") != python.pid().value()) {
        EXPECT_EQ(functions.empty() ? "" : functions.back(), "waits");
        continue;
      }
      uncertain += thread.at("settled") == true ? 0 : 1;
      std::erase_if(functions,
                    [](const auto& name) { return name == "inner.<locals>.<listcomp>"; });
      ASSERT_LE(functions.size(), kChain.size());
      EXPECT_TRUE(std::equal(functions.begin(), functions.end(), kChain.begin()))
          << process.dump(1);
    }
  }
  RecordProperty("uncertain", uncertain);
}

INSTANTIATE_TEST_SUITE_P(Builds, DumpOfBusy, testing::ValuesIn(all_builds()), BuildName{});

// The interpreter does not matter.
class DumpCommand : public testing::Test {
 protected:
  static constexpr auto kWaiting = "import sys; print('ready', flush=True); sys.stdin.read()";
};

TEST_F(DumpCommand, GoesOnAfterAProcessThatCannotBeDumped) {
  PythonProcess forking{newest_interpreter(),
                        "import os, sys\nchild = os.fork() or os._exit(0)\n"
                        "print('ready', child, sep='\\n', flush=True); sys.stdin.read()"};
  const auto zombie = forking.read_line();
  ChildProcess other{{"/bin/sleep", "1000"}};
  ASSERT_TRUE(comes_to_state(base::Pid{std::stoi(zombie)}, 'Z'));
  PythonProcess python{newest_interpreter(), kWaiting};
  wait_until_asleep(python.pid());
  const auto result = dump(python.pid(), {"-p", zombie, "-p", std::to_string(other.pid().value())});
  EXPECT_EQ(result.status, ExitStatus{125});
  EXPECT_THAT(result.err,
              AllOf(HasSubstr(fmt::format("pid {}: cannot dump: it is a zombie", zombie)),
                    HasSubstr("(zombie)"), HasSubstr("(not_python)")));
  EXPECT_THAT(result.out, AllOf(HasSubstr("<module>  <string>:1\n"), Not(HasSubstr("sleep 1000"))));
  const auto all = json::parse(run({tool(), "dump", "--json", "-q", "-p", zombie, "-p",
                                    std::to_string(python.pid().value())})
                                   .out);
  EXPECT_EQ(all.at("version"), 1);
  EXPECT_EQ(all.at("processes").at(0).at("reason"), "zombie");
  EXPECT_TRUE(all.at("processes").at(0).at("threads").empty());
  EXPECT_TRUE(all.at("processes").at(1).at("reason").is_null());
}

TEST_F(DumpCommand, SelectsByName) {
  PythonProcess python{newest_interpreter(), kWaiting};
  PythonProcess other{newest_interpreter(), "open('/proc/self/comm', 'w').write('dumped-other')\n" +
                                                std::string{kWaiting}};
  const auto result = run({tool(), "dump", "--comm", "dumped-o*"});
  EXPECT_EQ(result.status, ExitStatus{});
  EXPECT_THAT(result.out, AllOf(HasSubstr(fmt::format("pid {} (", other.pid().value())),
                                Not(HasSubstr(fmt::format("pid {} (", python.pid().value())))));
  const auto none = run({tool(), "dump", "--comm", "no such process"});
  EXPECT_EQ(none.status, ExitStatus{125});
  EXPECT_THAT(none.err, HasSubstr("perf-pyinject status"));
}

TEST_F(DumpCommand, ShowsTheSourceThatTheProcessHasRead) {
  using std::filesystem::last_write_time;
  const TempDir directory;
  const auto program = directory.file("program.py", "import sys\n\nsys.stdin.read()  # here\n");
  const auto now = last_write_time(program);
  last_write_time(program, now - std::chrono::hours{1});
  PythonProcess python{newest_interpreter(),
                       fmt::format("print('ready', flush=True)\n"
                                   "exec(compile(open('{0}').read(), '{0}', 'exec'))",
                                   program)};
  wait_until_asleep(python.pid());
  EXPECT_THAT(dump(python.pid()).out,
              HasSubstr("program.py:3\n        sys.stdin.read()  # here\n"));
  EXPECT_THAT(dump(python.pid(), {"--no-source"}).out,
              AllOf(HasSubstr("program.py:3\n"), Not(HasSubstr("here"))));
  last_write_time(program, now + std::chrono::hours{1});
  EXPECT_THAT(dump(python.pid()).out,
              AllOf(HasSubstr("program.py:3\n"), Not(HasSubstr("here")),
                    HasSubstr("  without the source of " + program +
                              ": it was changed after the process started\n")));
}

// As with files of a server that is dead: whoever opens the file waits.
TEST_F(DumpCommand, DoesNotWaitForSourcesThatCannotBeRead) {
  const TempDir directory;
  const auto program = directory.file("program.py", "import sys\n\nsys.stdin.read()  # here\n");
  std::filesystem::last_write_time(
      program, std::filesystem::last_write_time(program) - std::chrono::hours{1});
  PythonProcess python{newest_interpreter(),
                       fmt::format("print('ready', flush=True)\n"
                                   "exec(compile(open('{0}').read(), '{0}', 'exec'))",
                                   program)};
  wait_until_asleep(python.pid());
  {
    const base::UniqueFd opens{::fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY)};
    if (!opens.valid() ||
        ::fanotify_mark(opens.get(), FAN_MARK_ADD, FAN_OPEN_PERM, AT_FDCWD, program.c_str()) != 0) {
      GTEST_SKIP() << "fanotify(7) cannot keep a file from being opened here";
    }
    EXPECT_THAT(dump(python.pid()).out, AllOf(HasSubstr("program.py:3\n"), Not(HasSubstr("here")),
                                              HasSubstr("  without sources: the file system of " +
                                                        program + " does not answer\n")));
  }
  EXPECT_THAT(dump(python.pid()).out, HasSubstr("sys.stdin.read()  # here\n"));
}

TEST_F(DumpCommand, ShowsOnlyTheChosenThreads) {
  PythonProcess python{newest_interpreter(), target_source("stuck.py")};
  const auto told = json::parse(python.read_line());
  const auto tid = std::to_string(told.at("red").get<long>());
  for (const auto& target :
       {std::vector<std::string>{"dump", "--tid", tid, "--json"},
        {"dump", std::to_string(python.pid().value()), "--tid", tid, "--json"}}) {
    auto argv = target;
    argv.insert(argv.begin(), tool());
    const auto process = json::parse(run(argv).out).at("processes").at(0);
    EXPECT_EQ(process.at("pid"), python.pid().value());
    ASSERT_EQ(process.at("threads").size(), 1U);
    EXPECT_EQ(process.at("threads").at(0).at("tid"), std::stol(tid));
  }
  EXPECT_THAT(run({tool(), "dump", "--tid", tid}).out,
              AllOf(HasSubstr("DEADLOCK"), HasSubstr("  thread " + tid + " \"red\""),
                    Not(HasSubstr("  thread " + std::to_string(python.pid().value()) + " "))));
  const auto none = dump(python.pid(), {"--tid", "1"});
  EXPECT_EQ(none.status, ExitStatus{125});
  EXPECT_THAT(none.err, HasSubstr("there is no thread 1 of these processes"));
}

TEST_F(DumpCommand, WatchEndsWithTheProcess) {
  PythonProcess python{newest_interpreter(), kWaiting};
  ChildProcess watch{
      {tool(), "dump", "--json", "--watch", "20ms", "-p", std::to_string(python.pid().value())}};
  for (int i = 0; i < 3; ++i) {
    const auto line = watch.read_line(Deadline::after(kPatience));
    ASSERT_TRUE(line);
    EXPECT_EQ(json::parse(*line).at("processes").at(0).at("pid"), python.pid().value());
  }
  python.terminate();
  EXPECT_EQ(watch.wait(Deadline::after(kPatience)), ExitStatus{});
  EXPECT_THAT(watch.err(), HasSubstr(fmt::format("pid {}: cannot dump: ", python.pid().value())));
}

TEST_F(DumpCommand, WatchTellsWhichTaskStaysInItsAwait) {
  PythonProcess python{newest_interpreter(), R"(
import asyncio
async def stuck(future):
    await future
async def steps():
    while True:
        for _ in range(3):
            await asyncio.sleep(0)
        await asyncio.sleep(0)
async def main():
    future = asyncio.get_running_loop().create_future()
    tasks = [asyncio.create_task(stuck(future), name='stuck'),
             asyncio.create_task(steps(), name='steps')]
    await asyncio.sleep(0)
    print('ready', flush=True)
    await asyncio.wait(tasks)
asyncio.run(main())
)"};
  ChildProcess watch{
      {tool(), "dump", "--json", "--watch", "20ms", "-p", std::to_string(python.pid().value())}};
  // `steps` stays only while the process gets no processor from one picture to the next.
  double longest = 0;
  bool goes_on = false;
  const auto deadline = Deadline::after(kPatience);
  while ((longest < 0.04 || !goes_on) && !deadline.expired()) {
    const auto line = watch.read_line(deadline);
    ASSERT_TRUE(line);
    const auto picture = json::parse(*line);
    for (const auto& task : picture.at("processes").at(0).at("tasks")) {
      const auto& in_await = task.at("same_await_seconds");
      if (task.at("name") == "stuck" && !in_await.is_null()) {
        EXPECT_GT(in_await, longest);
        longest = in_await;
      }
      goes_on = goes_on || (longest > 0 && task.at("name") == "steps" && in_await.is_null());
    }
  }
  EXPECT_GE(longest, 0.04);
  EXPECT_TRUE(goes_on);
  PtyProcess shown{{tool(), "dump", "--watch", "20ms", "-p", std::to_string(python.pid().value())}};
  EXPECT_TRUE(
      shown.read_until("\": pending, seen in the same await for ", Deadline::after(kPatience)))
      << shown.screen();
}

TEST_F(DumpCommand, WatchReplacesTheScreenUntilCtrlC) {
  PythonProcess python{newest_interpreter(), kWaiting};
  PtyProcess watch{{tool(), "dump", "--watch", "20ms", "-p", std::to_string(python.pid().value())}};
  const auto deadline = Deadline::after(kPatience);
  ASSERT_TRUE(watch.read_until("<module>", deadline)) << watch.screen();
  watch.type("\x03");
  EXPECT_EQ(watch.wait(deadline), ExitStatus{});
  EXPECT_THAT(watch.screen(), HasSubstr("\x1b[H\x1b[2J"));
}

}  // namespace
}  // namespace pyinject::test
