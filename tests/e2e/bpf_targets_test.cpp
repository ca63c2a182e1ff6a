// Which processes the BPF engine can record, and how their recordings end.
#include "base/file.hpp"
#include "base/text.hpp"
#include "e2e/bpf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "support/guards.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/temp_dir.hpp"
#include "support/untouched.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

#include <linux/bpf.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pyinject::test {
namespace {

namespace filesystem = std::filesystem;
using base::Deadline;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class BpfTargets : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
    if (!plain_interpreter(13) || !plain_interpreter(15)) {
      GTEST_SKIP() << "no CPython 3.13 or 3.15 (scripts/pythons)";
    }
  }
  [[nodiscard]] std::string data() const { return directory_ / "data"; }

 private:
  TempDir directory_;
};

// Threads that wait in different ways; the main thread waits in a read.
constexpr auto kIdle = R"(
import queue, select, sys, threading, time
lock = threading.Lock()
lock.acquire()
for wait in (lock.acquire, queue.Queue().get, threading.Event().wait,
             lambda: time.sleep(1000), lambda: select.select([], [], [], 1000)):
    threading.Thread(target=wait, daemon=True).start()
print('ready', flush=True)
sys.stdin.read()
)";

class BpfIdle : public testing::TestWithParam<Interpreter> {};

TEST_P(BpfIdle, NothingHappensToOneThatWaits) {
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
    GTEST_SKIP() << lacks;
  }
  PythonProcess target{GetParam(), kIdle};
  const TempDir directory;
  const Untouched before{target.pid()};
  RunningRecord running{bpf_record(std::to_string(target.pid().value()), directory / "data")};
  EXPECT_THAT(before.differences(), IsEmpty());
  EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  EXPECT_THAT(before.differences(), IsEmpty());
  EXPECT_FALSE(filesystem::exists(
                   fmt::format("{}/tmp/perf-{}.map", GetParam().root, target.pid().value())) &&
               !GetParam().root.empty());
}

INSTANTIATE_TEST_SUITE_P(Pythons, BpfIdle, testing::ValuesIn(interpreters()), InterpreterName{});

// The trampoline engine refuses it.
TEST_F(BpfTargets, OneWithAJitIsRecordedByThisEngineOnly) {
  const Build build{.minor = 15, .jit = true};
  const auto python = find_build(build);
  if (!python) {
    GTEST_SKIP() << "3.15 without a JIT";
  }
  PythonOptions options;
  options.child = environment_of(build);
  ServedTree target{*python, options};
  const auto refused = run_tool(
      {"record", "--engine", "trampoline", "-p", target.pid(), "-o", data(), "--", "true"});
  EXPECT_EQ(refused.status, (ExitStatus{.code = 125}));
  EXPECT_THAT(refused.err, HasSubstr("(jit_active)"));
  RunningRecord running{bpf_record(target.pid(), data())};
  target.serve(5, milliseconds{500});
  EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  expect_right(count_named(read_samples("perf", data())), running.child().err());
}

TEST_F(BpfTargets, ForkedChildrenHaveTheNamesThatTheyInheritAndTheirOwn) {
  const auto text = target_source("family.py");
  for (const int minor : {13, 15}) {
    SCOPED_TRACE(minor);
    PythonProcess target{plain_interpreter(minor).value(), text};
    RunningRecord running{bpf_record(std::to_string(target.pid().value()), data())};
    target.send_line("fork");
    const auto child = target.read_line(kPatience);
    ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
    const auto [inherited, all] =
        count_chain(data(), child, {"<module>", "serve", "have_child", "grow", "inherited"});
    const auto [born, same] =
        count_chain(data(), child, {"<module>", "serve", "have_child", "grow", "born"});
    EXPECT_GE(inherited, 100U) << running.child().err();
    EXPECT_GE(born, 100U) << running.child().err();
    // The rest is the fork itself and the child's exit.
    EXPECT_GE(100 * (inherited + born), 90 * all) << running.child().err();
    EXPECT_EQ(all, same);
  }
}

TEST_F(BpfTargets, ChildrenThatExecuteAnotherPythonAreOfTheFamily) {
  const auto text = target_source("family.py");
  PythonProcess target{plain_interpreter(13).value(), text};
  auto arguments = bpf_record(std::to_string(target.pid().value()), data());
  arguments.emplace_back("--children");
  RunningRecord running{arguments};
  target.send_line("exec " + plain_interpreter(15)->command.front());
  const auto child = target.read_line(kPatience);
  ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  const auto [right, all] = count_chain(data(), child, {"<module>", "grown_up"});
  EXPECT_GE(right, 200U) << "of " << all << "\n" << running.child().err();
}

TEST_F(BpfTargets, KeepTheirNamesWhenTheyEnd) {
  for (const bool killed : {false, true}) {
    SCOPED_TRACE(killed);
    ServedTree target{*plain_interpreter(13), on_request()};
    RunningRecord running{bpf_record(target.pid(), data())};
    target.serve(5, milliseconds{500});
    if (killed) {
      target.process().child().signal(SIGKILL);
    } else {
      EXPECT_EQ(target.finish(), ExitStatus{});
    }
    EXPECT_EQ(running.wait(), ExitStatus{});
    const auto& messages = running.child().err();
    EXPECT_THAT(messages, HasSubstr("the target exited before the end of the recording"));
    EXPECT_THAT(messages, Not(HasSubstr("error:")));
    const auto named = count_named(read_samples("perf", data()));
    EXPECT_GE(named.samples, 200U) << messages;
    expect_right(named, messages);
  }
}

// A map left by an earlier process with the same pid, which ran the same program with the
// trampoline: its addresses are not valid for this one.
TEST_F(BpfTargets, AMapOfAnotherProcessIsNotBelieved) {
  ServedTree target{*plain_interpreter(13), on_request()};
  const auto map = fmt::format("/tmp/perf-{}.map", target.pid());
  std::ofstream{map} << "7fb6572f8000 200 py::burn_method:<string>\n"
                        "7fb6572f8200 200 py::request:<string>\n";
  filesystem::last_write_time(map, filesystem::file_time_type::min());
  RunningRecord running{bpf_record(target.pid(), data())};
  target.serve(5, milliseconds{500});
  ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  const auto named = count_named(read_samples("perf", data()));
  EXPECT_GE(named.samples, 100U);
  expect_right(named, running.child().err());
}

// The BPF objects that the process holds, with the bpf(2) command that finds each.
std::set<std::pair<int, std::uint32_t>> bpf_objects_of(base::Pid pid) {
  std::set<std::pair<int, std::uint32_t>> objects;
  const auto directory = fmt::format("/proc/{}/fdinfo", pid.value());
  for (const auto& entry : filesystem::directory_iterator{directory}) {
    const auto text = base::read_file(entry.path().string()).value_or("");
    for (const auto line : base::split(text, '\n')) {
      const auto colon = line.find(':');
      const auto number =
          colon == std::string_view::npos
              ? std::nullopt
              : base::parse_number<std::uint32_t>(base::trim(line.substr(colon + 1)));
      if (number && line.starts_with("prog_id")) {
        objects.emplace(BPF_PROG_GET_FD_BY_ID, *number);
      } else if (number && line.starts_with("map_id")) {
        objects.emplace(BPF_MAP_GET_FD_BY_ID, *number);
      }
    }
  }
  return objects;
}

bool exists(const std::pair<int, std::uint32_t>& object) {
  bpf_attr attributes{};
  attributes.prog_id = object.second;  // shares its offset with map_id
  const base::UniqueFd fd{
      static_cast<int>(::syscall(SYS_bpf, object.first, &attributes, sizeof(attributes)))};
  return fd.valid();
}

// The kernel frees them some time after the last descriptor is closed.
void expect_gone(const std::set<std::pair<int, std::uint32_t>>& objects) {
  const auto deadline = Deadline::after(kPatience);
  for (const auto& object : objects) {
    while (exists(object) && !deadline.expired()) {
      ::sched_yield();
    }
    EXPECT_FALSE(exists(object)) << "object " << object.second << " is still in the kernel";
  }
}

TEST_F(BpfTargets, NothingIsLeftInTheKernelAfterARecording) {
  ServedTree target{*plain_interpreter(15), on_request()};
  RunningRecord running{bpf_record(target.pid(), data())};
  const auto objects = bpf_objects_of(running.child().pid());
  EXPECT_GE(objects.size(), 2U) << "at least a program and a map";
  EXPECT_TRUE(std::ranges::all_of(objects, exists));
  EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  expect_gone(objects);
}

TEST_F(BpfTargets, NothingIsLeftOfAToolThatIsKilled) {
  const Guards guards;
  ServedTree target{*plain_interpreter(15), on_request()};
  const base::Pid pid{std::stoi(target.pid())};
  target.serve(20);
  const auto before = take_snapshot(pid);
  std::set<std::pair<int, std::uint32_t>> objects;
  {
    RunningRecord running{bpf_record(target.pid(), data())};
    target.serve(20);
    objects = bpf_objects_of(running.child().pid());
    EXPECT_GE(objects.size(), 2U);
    running.child().signal(SIGKILL);
    EXPECT_EQ(running.wait(), (ExitStatus{.signal = SIGKILL}));
  }
  guards.wait_for_orphans({pid});
  expect_gone(objects);
  EXPECT_EQ(trampoline_of(target.pid()), "off");
  target.serve(20);
  EXPECT_THAT(differences(before, take_snapshot(pid), {.maps = false}), IsEmpty());
  EXPECT_EQ(target.finish(), ExitStatus{});
}

}  // namespace
}  // namespace pyinject::test
