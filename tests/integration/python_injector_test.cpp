// Switching on and off, on every interpreter, as a user of the library sees it.
#include "base/fault.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "procfs/maps.hpp"
#include "procfs/own_rights.hpp"
#include "procfs/stat.hpp"
#include "procfs/status.hpp"
#include "python/activate/single_rung.hpp"
#include "support/asleep.hpp"
#include "support/attach.hpp"
#include "support/child_process.hpp"
#include "support/covering.hpp"
#include "support/interpreters.hpp"
#include "support/patience.hpp"
#include "support/python_process.hpp"
#include "support/snapshot.hpp"
#include "support/untouched.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <set>

#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::test {
namespace {

using python::Mechanism;
using python::TrampolineState;

class Injector : public testing::TestWithParam<Interpreter> {
 protected:
  static Snapshot at_rest_snapshot(base::Pid pid) {
    wait_until_asleep(pid);
    return take_snapshot(pid);
  }

  // The lines of the target's map, read through the descriptor that the activation returned.
  static std::vector<std::string> map_lines(const python::Activation& activation) {
    EXPECT_TRUE(activation.map.valid());
    ::lseek(activation.map.get(), 0, SEEK_SET);
    const auto text = base::read_fd(activation.map.get(), std::size_t{1} << 26U, "map");
    std::vector<std::string> lines;
    for (const auto line : base::split(text, '\n')) {
      if (!line.empty()) {
        lines.emplace_back(line);
      }
    }
    return lines;
  }

  Attach attach_;
};

// Answers each line of stdin with the sum of a few calls, which shows that it works correctly.
constexpr const char* kServer = R"(
import sys
class Adder:
    def add(self, a, b):
        return a + b
def triangle(n):
    adder = Adder()
    total = 0
    for i in range(n + 1):
        total = adder.add(total, i)
    return total
print('ready', flush=True)
for line in sys.stdin:
    n = int(line)
    ns = {}
    exec(f'def fresh_{n}(): return triangle({n})', globals(), ns)
    print(ns[f'fresh_{n}'](), sys.is_stack_trampoline_active(), flush=True)
)";

TEST_P(Injector, SwitchesNamesOnAndOff) {
  PythonProcess server{GetParam(), kServer};
  const auto ask = [&server](int n) {
    server.send_line(std::to_string(n));
    return server.read_line();
  };
  EXPECT_EQ(ask(10), "55 False");
  const auto activation = attach_.activate(server.pid());
  EXPECT_EQ(activation.before, TrampolineState::kOff);
  EXPECT_EQ(attach_.detect(server.pid()).state, TrampolineState::kOnByUs);
  EXPECT_EQ(ask(100), "5050 True");
  EXPECT_THAT(map_lines(activation), testing::Contains(testing::HasSubstr("py::Adder.add:")));
  EXPECT_THAT(map_lines(activation), testing::Contains(testing::HasSubstr("py::fresh_100:")));

  EXPECT_EQ(attach_.deactivate(server.pid()).mechanism, Mechanism::kStore);
  EXPECT_EQ(attach_.detect(server.pid()).state, TrampolineState::kOff);
  EXPECT_EQ(ask(11), "66 False");
  EXPECT_THAT(map_lines(activation),
              testing::Not(testing::Contains(testing::HasSubstr("fresh_11:"))));

  const auto again = attach_.activate(server.pid());
  EXPECT_EQ(again.mechanism, Mechanism::kStore) << "no second call in the life of a process";
  EXPECT_EQ(ask(12), "78 True");
  EXPECT_THAT(map_lines(again), testing::Contains(testing::HasSubstr("py::fresh_12:")));
  attach_.deactivate(server.pid());
  server.child().close_stdin();
  EXPECT_EQ(server.child().wait(base::Deadline::after(kPatience)), ExitStatus{});
}

TEST_P(Injector, LeavesTheProcessAsItWas) {
  PythonProcess server{GetParam(), kServer};
  server.send_line("3");
  EXPECT_EQ(server.read_line(), "6 False");
  attach_.activate(server.pid());  // creates the arena and the map's descriptor
  attach_.deactivate(server.pid());
  const auto before = at_rest_snapshot(server.pid());
  for (int i = 0; i < 3; ++i) {
    attach_.activate(server.pid());
    attach_.deactivate(server.pid());
  }
  EXPECT_THAT(differences(before, at_rest_snapshot(server.pid())), testing::IsEmpty());
}

TEST_P(Injector, FirstActivationLeavesOnlyTheArenaAndTheMap) {
  PythonProcess server{GetParam(), kServer};
  server.send_line("3");
  EXPECT_EQ(server.read_line(), "6 False");
  const auto before = at_rest_snapshot(server.pid());
  attach_.activate(server.pid());
  attach_.deactivate(server.pid());
  // Ignore mappings: compiling the payload may allocate. The only other difference is the map's fd.
  const auto found = differences(before, at_rest_snapshot(server.pid()), {.maps = false});
  EXPECT_THAT(found,
              testing::ElementsAre(testing::ContainsRegex("fd [0-9]+ opened: .*/tmp/perf-")));
}

struct Growth {
  std::size_t own_kib = 0;  // without file mappings, whose size also depends on other processes
  std::size_t mappings = 0;
};

Growth growth_of(base::Pid pid) {
  // smaps_rollup counts exactly; statm and status may be off by some pages.
  const auto rollup =
      base::read_file("/proc/" + std::to_string(pid.value()) + "/smaps_rollup").value_or("");
  constexpr std::string_view kField = "\nAnonymous:";
  const auto at = std::min(rollup.find(kField) + kField.size(), rollup.size());
  const auto words = base::split(base::trim(std::string_view{rollup}.substr(at)), ' ');
  return {.own_kib = base::parse_number<std::size_t>(words.at(0)).value(),
          .mappings = procfs::read_maps(pid)->size()};
}

TEST_P(Injector, FiveHundredCyclesNeitherGrowNorRepeat) {
  ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);  // keep its children's memory from growing by 2 MiB
  PythonProcess server{GetParam(), kServer};
  ::prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
  auto activation = attach_.activate(server.pid());
  server.send_line("7");
  EXPECT_EQ(server.read_line(), "28 True");
  attach_.deactivate(server.pid());
  const auto before = growth_of(server.pid());
  for (int cycle = 0; cycle < 500; ++cycle) {
    activation = attach_.activate(server.pid());
    if (cycle % 50 == 0) {
      server.send_line("7");
      ASSERT_EQ(server.read_line(), "28 True") << "cycle " << cycle;
    }
    attach_.deactivate(server.pid());
  }
  const auto after = growth_of(server.pid());
  EXPECT_EQ(after.mappings, before.mappings);
  EXPECT_LE(after.own_kib, before.own_kib + 128) << "for compiling fresh_7";
  const auto lines = map_lines(activation);
  std::set<std::string> addresses;
  for (const auto& line : lines) {
    EXPECT_TRUE(addresses.insert(line.substr(0, line.find(' '))).second) << line;
  }
  server.child().close_stdin();
  EXPECT_EQ(server.child().wait(base::Deadline::after(kPatience)), ExitStatus{});
}

TEST_P(Injector, ATargetThatIsOnByItselfStaysOn) {
  PythonOptions options;
  options.interpreter_args = {"-X", "perf"};
  PythonProcess server{GetParam(), kServer, options};
  EXPECT_EQ(attach_.detect(server.pid()).state, TrampolineState::kOnByItself);
  const auto activation = attach_.activate(server.pid());
  EXPECT_EQ(activation.mechanism, Mechanism::kNone);
  EXPECT_EQ(activation.before, TrampolineState::kOnByItself);
  EXPECT_EQ(attach_.deactivate(server.pid()).mechanism, Mechanism::kNone);
  server.send_line("4");
  EXPECT_EQ(server.read_line(), "10 True");
}

TEST_P(Injector, ActivatingTwiceIsActivatingOnce) {
  PythonProcess server{GetParam(), kServer};
  attach_.activate(server.pid());
  const auto second = attach_.activate(server.pid());
  EXPECT_EQ(second.before, TrampolineState::kOnByUs);
  EXPECT_EQ(second.mechanism, Mechanism::kNone);
  attach_.deactivate(server.pid());
  EXPECT_EQ(attach_.deactivate(server.pid()).mechanism, Mechanism::kNone);
}

TEST_P(Injector, AnotherLivingSessionIsRespected) {
  PythonProcess server{GetParam(), kServer};
  PythonProcess other{GetParam(), kServer};  // stands in for another perf-pyinject
  auto options = Attach::patient();
  options.owner.session = attach_.detect(other.pid()).id;
  attach_.activate(server.pid(), options);

  const auto before = at_rest_snapshot(server.pid());
  const auto refused = attach_.try_activate(server.pid(), Attach::patient());
  EXPECT_THAT(differences(before, at_rest_snapshot(server.pid())), testing::IsEmpty());
  ASSERT_TRUE(std::holds_alternative<python::Refusal>(refused));
  EXPECT_EQ(std::get<python::Refusal>(refused).reason, python::Reason::kOtherSession);
  EXPECT_THROW(attach_.deactivate(server.pid()), base::Error);

  other.terminate();
  const auto adopted = attach_.activate(server.pid());
  EXPECT_EQ(adopted.before, TrampolineState::kOff)
      << "a trampoline left on by a dead session is switched off";
  attach_.deactivate(server.pid());
}

// Stands in for a perf-pyinject in a container, where it has pid 1.
class ContainedSession {
 public:
  ContainedSession()
      : session_{{"unshare", "--pid", "--fork", "--kill-child", "sh", "-c",
                  "read -r stat </proc/self/stat; echo \"$stat\"; read -r end"}} {
    const auto line = session_.read_line(base::Deadline::after(kPatience)).value();
    const base::Pid pid{std::stoi(line)};
    struct stat space {};
    EXPECT_EQ(::stat(("/proc/" + std::to_string(pid.value()) + "/ns/pid").c_str(), &space), 0);
    owner_ = {.session = {.pid = base::Pid{1}, .start_time = procfs::read_stat(pid)->start_time},
              .pid_namespace = static_cast<std::uint32_t>(space.st_ino)};
  }

  [[nodiscard]] const python::Owner& owner() const { return owner_; }

  void end() {
    session_.close_stdin();
    ASSERT_TRUE(session_.wait(base::Deadline::after(kPatience)));
  }

 private:
  ChildProcess session_;
  python::Owner owner_;
};

TEST_P(Injector, ALivingSessionInAnotherPidNamespaceIsRespected) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "a pid namespace of its own takes root";
  }
  ContainedSession session;
  PythonProcess server{GetParam(), kServer};
  auto options = Attach::patient();
  options.owner = session.owner();
  attach_.activate(server.pid(), options);

  const auto refused = attach_.try_activate(server.pid(), Attach::patient());
  ASSERT_TRUE(std::holds_alternative<python::Refusal>(refused));
  EXPECT_EQ(std::get<python::Refusal>(refused).reason, python::Reason::kOtherSession);
  EXPECT_THROW(attach_.deactivate(server.pid()), base::Error);

  session.end();
  if (procfs::in_first_pid_namespace()) {  // elsewhere its end cannot be proved
    EXPECT_EQ(attach_.activate(server.pid()).before, TrampolineState::kOff);
    attach_.deactivate(server.pid());
  }
}

// Two containers that start in the same clock tick: their first processes both have pid 1 and the
// same start time.
TEST_P(Injector, AnEndedSessionIsNotTakenForOneOfAnotherPidNamespace) {
  if (::geteuid() != 0 || !procfs::in_first_pid_namespace()) {
    GTEST_SKIP() << "root of the first pid namespace proves that a session elsewhere has ended";
  }
  const ContainedSession living;
  auto ended = living.owner();
  {
    ContainedSession session;
    ended.pid_namespace = session.owner().pid_namespace;
    session.end();
  }
  PythonProcess server{GetParam(), kServer};
  auto options = Attach::patient();
  options.owner = ended;
  attach_.activate(server.pid(), options);
  EXPECT_EQ(attach_.activate(server.pid()).before, TrampolineState::kOff);
  attach_.deactivate(server.pid());
}

TEST_P(Injector, EachRungCanBeForced) {
  for (const auto rung : {Mechanism::kPendingQueue, Mechanism::kPendingCallFrames}) {
    PythonProcess busy{GetParam(), R"(
def work(n):
    return sum(range(n))
print('ready', flush=True)
expected = work(100)
while True:
    assert work(100) == expected
)"};
    Attach attach{python::make_injector_with(rung)};
    EXPECT_EQ(attach.activate(busy.pid()).mechanism, rung);
    attach.deactivate(busy.pid());
    busy.expect_alive();
  }
}

TEST_P(Injector, AForkedChildIsSeenForWhatItIs) {
  PythonProcess parent{GetParam(), R"(
import os, sys
print('ready', flush=True)
for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        print(os.getpid(), sys.is_stack_trampoline_active(), flush=True)
        sys.stdin.readline()
        print(sys.is_stack_trampoline_active(), flush=True)
        os._exit(0)
    os.waitpid(pid, 0)
)"};
  const auto fork_child = [&parent] {
    parent.send_line("fork");
    const auto words = parent.read_line();
    return std::pair{base::Pid{*base::parse_number<pid_t>(words.substr(0, words.find(' ')))},
                     words.substr(words.find(' ') + 1)};
  };
  attach_.activate(parent.pid());
  const auto [active_child, active] = fork_child();
  EXPECT_EQ(active, "True");
  EXPECT_EQ(attach_.detect(active_child).state, TrampolineState::kOnByUs);
  attach_.deactivate(active_child);
  parent.send_line("go on");
  EXPECT_EQ(parent.read_line(), "False");

  attach_.deactivate(parent.pid());
  const auto [idle_child, idle] = fork_child();
  EXPECT_EQ(idle, "False");
  if (GetParam().minor >= 14) {
    const Untouched before{idle_child};
    EXPECT_EQ(attach_.refusal(idle_child).reason, python::Reason::kForkedAfterActivation);
    EXPECT_THAT(before.differences(), testing::IsEmpty());
    parent.send_line("go on");
    EXPECT_EQ(parent.read_line(), "False");
  } else {
    attach_.activate(idle_child);
    parent.send_line("go on");
    EXPECT_EQ(parent.read_line(), "True");
  }
}

// It has neither arena nor map, but not because it could not have them.
TEST_P(Injector, AProcessThatExecsDuringItsActivationHasExited) {
  static PythonProcess* executing = nullptr;
  PythonProcess python{GetParam(), R"(
import os, select, sys
print('ready', flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    pass
sys.stdin.readline()
os.execv('/bin/sh', ['sh', '-c', 'echo executed; read line'])
)"};
  executing = &python;
  base::set_fault_handler([](base::Step step) {
    if (step == base::Step::kEvaluatorLearned) {
      executing->send_line("execute");
      EXPECT_EQ(executing->read_line(), "executed");
    }
  });
  const auto result = attach_.try_activate(python.pid(), Attach::patient());
  base::set_fault_handler(nullptr);
  ASSERT_TRUE(std::holds_alternative<python::Refusal>(result));
  const auto& refusal = std::get<python::Refusal>(result);
  EXPECT_EQ(refusal.reason, python::Reason::kExited) << python::describe(refusal);
}

COVER(Injector, kEveryVersion);
INSTANTIATE_TEST_SUITE_P(Pythons, Injector, testing::ValuesIn(interpreters({.both_ways = true})),
                         InterpreterName{});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Injector);

}  // namespace
}  // namespace pyinject::test
