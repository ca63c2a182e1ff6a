// Who can be recorded by the BPF engine, and how their recordings end.
#include "e2e/bpf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "pyinject/base/file.hpp"
#include "pyinject/base/text.hpp"
#include "support/find_perf.hpp"
#include "support/guards.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/stand_in_perf.hpp"
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
using std::chrono::seconds;
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
  [[nodiscard]] std::string data() const { return folder_ / "data"; }
  // The samples of PID with exactly this chain, and those in user space.
  [[nodiscard]] std::pair<std::size_t, std::size_t> count(
      const std::string& pid, const std::vector<std::string>& chain) const {
    std::size_t right = 0;
    std::size_t user = 0;
    for (const auto& sample : scripted_samples(data())) {
      user += sample.pid == pid && sample.user ? 1 : 0;
      right += sample.pid == pid && sample.user && sample.chain() == chain ? 1 : 0;
    }
    return {right, user};
  }

 private:
  TempDir folder_;
};

// Threads that wait in different ways, and the main thread in a read.
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
  const TempDir folder;
  const Untouched before{target.pid()};
  RunningRecord running{bpf_record(std::to_string(target.pid().value()), folder / "data")};
  EXPECT_THAT(before.differences(), IsEmpty());
  EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  EXPECT_THAT(before.differences(), IsEmpty());
  EXPECT_FALSE(filesystem::exists(
                   fmt::format("{}/tmp/perf-{}.map", GetParam().root, target.pid().value())) &&
               !GetParam().root.empty());
}

INSTANTIATE_TEST_SUITE_P(Interpreters, BpfIdle, testing::ValuesIn(find_interpreters()),
                         InterpreterName{});

// The trampoline would be of no use to it.
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
  target.serve(100);
  EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  EXPECT_GE(count_named(read_samples("perf", data())).innermost, 95) << running.child().err();
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
        count(child, {"<module>", "serve", "have_child", "grow", "inherited"});
    const auto [born, same] = count(child, {"<module>", "serve", "have_child", "grow", "born"});
    EXPECT_GE(inherited, 100U) << running.child().err();
    EXPECT_GE(born, 100U) << running.child().err();
    // Beside them there is the fork itself, and its end.
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
  const auto [right, all] = count(child, {"<module>", "grown_up"});
  EXPECT_GE(right, 200U) << "of " << all << "\n" << running.child().err();
}

// Once perf gives up, as it does when a thread ends while it opens its events; before that it does
// as FIRST says.
std::string giving_up_perf(const TempDir& folder, const std::string& first = ":") {
  return stand_in_perf(folder, fmt::format("if [ ! -e {0}/gave_up ]; then\n"
                                           "  {1}; : > {0}/gave_up\n"
                                           "  echo 'Error: No such process' >&2\n"
                                           "  exit 255\n"
                                           "fi\n"
                                           "exec $PERF \"$@\"\n",
                                           folder.path().string(), first));
}

// perf gives up when a thread ends while it opens its events; until then it has put an earlier file
// aside. Here its first recording does, by a stand-in. The whole system is recorded instead.
TEST_F(BpfTargets, WhosePerfGivesUpAreRecordedByAnotherOne) {
  const TempDir folder;
  const auto perf = giving_up_perf(folder, fmt::format("mv {0} {0}.old; : > {0}", data()));
  std::ofstream{data()} << "earlier";
  ServedTree target{*plain_interpreter(13)};
  auto arguments = bpf_record(target.pid(), data());
  arguments.insert(arguments.end(), {"--perf", perf});
  RunningRecord running{arguments};
  target.serve(100);
  ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  ASSERT_TRUE(std::filesystem::exists(folder.path() / "gave_up"));
  EXPECT_EQ(contents_of(data() + ".old"), "earlier") << running.child().err();
  EXPECT_GE(count_named(read_samples("perf", data())).innermost, 95) << running.child().err();
  EXPECT_EQ(target.finish(), ExitStatus{});
}

constexpr auto kTracepoint = "sched:sched_switch";

bool has_tracepoints() {
  return filesystem::exists("/sys/kernel/tracing/events/sched/sched_switch");
}

// perf's own event, which samples nothing, takes it.
TEST_F(BpfTargets, WithoutAnEventThatTakesAProgramTheTrampolineIsTheChoice) {
  if (!has_tracepoints()) {
    GTEST_SKIP() << "no tracefs is mounted";
  }
  ServedTree target{*plain_interpreter(13)};
  for (const auto* const perf : {"perf", "perf6.12", "perf7"}) {
    SCOPED_TRACE(perf);
    const auto path = find_perf(perf);
    if (!path) {
      continue;
    }
    const std::vector<std::string> options{"-p",     target.pid(), "-e", kTracepoint,
                                           "--perf", *path,        "-o", data()};
    std::vector<std::string> refused{"record", "--engine", "bpf"};
    refused.insert(refused.end(), options.begin(), options.end());
    refused.insert(refused.end(), {"--", "true"});
    const auto result = run_tool(refused);
    EXPECT_EQ(result.status, (ExitStatus{.code = 125})) << result.err;
    EXPECT_THAT(result.err, HasSubstr("none of those that sample takes it"));
    EXPECT_FALSE(filesystem::exists(data())) << "nothing was recorded";
  }
  RunningRecord running{{"--engine", "auto", "-p", target.pid(), "-e", kTracepoint, "-o", data()}};
  EXPECT_EQ(trampoline_of(target.pid()), "on by us");
  EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  EXPECT_THAT(running.child().err(), HasSubstr("the trampoline is used instead"));
}

// Of events that take no program nothing is dropped in the kernel: perf does not record the whole
// system then, also where it has given up.
TEST_F(BpfTargets, OfEventsThatTakeNoProgramOthersAreNotRecorded) {
  if (!has_tracepoints()) {
    GTEST_SKIP() << "no tracefs is mounted";
  }
  const TempDir folder;
  const auto perf = giving_up_perf(folder);
  ServedTree target{*plain_interpreter(13)};
  auto arguments = bpf_record(target.pid(), data());
  arguments.insert(arguments.end(), {"-e", kTracepoint, "--perf", perf});
  RunningRecord running{arguments};
  target.serve(100);
  ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  ASSERT_TRUE(filesystem::exists(folder.path() / "gave_up"));
  std::set<std::string> pids;
  for (const auto& sample : scripted_samples(data())) {
    pids.insert(sample.pid);
  }
  EXPECT_EQ(pids, std::set<std::string>{target.pid()}) << running.child().err();
  EXPECT_THAT(running.child().err(), HasSubstr("take no program"));
}

// Forks when it gets SIGUSR1, and says the child's number in a file. The child works.
constexpr auto kForksBySignal = R"(
import os, signal, sys
def burn():
    for _ in range(3000):
        pass
def have_child(*_):
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        while os.getppid() == parent:
            burn()
        os._exit(0)
    with open(sys.argv[1] + ".new", "w") as file:
        file.write(str(child))
    os.rename(sys.argv[1] + ".new", sys.argv[1])
signal.signal(signal.SIGUSR1, have_child)
print("ready", flush=True)
while True:
    signal.pause()
)";

// Waits until the process has had so much more of a processor.
void work(const std::string& pid, std::chrono::nanoseconds more) {
  const auto worked = [&] {
    const auto text = base::read_file(fmt::format("/proc/{}/schedstat", pid)).value_or("");
    return base::parse_number<std::int64_t>(text.substr(0, text.find(' '))).value_or(0);
  };
  const auto enough = worked() + more.count();
  const auto deadline = Deadline::after(kPatience);
  while (worked() < enough && !deadline.expired()) {
    ::sched_yield();
  }
}

// Until perf has opened its events (here it has a stand-in that waits for the child) it does not
// know of the child. It is started anew, here with the child's number, and by then the child has
// what its parent has.
TEST_F(BpfTargets, ChildrenThatAreForkedWhilePerfStartsAreKnown) {
  const TempDir folder;
  const auto file = folder.path() / "child";
  PythonOptions options;
  options.args = {file};
  PythonProcess target{*plain_interpreter(13), kForksBySignal, options};
  const auto pid = std::to_string(target.pid().value());
  const auto perf = stand_in_perf(folder, fmt::format("echo >> {0}/starts\n"
                                                      "[ -e {1} ] || kill -USR1 {2}\n"
                                                      "until [ -e {1} ]; do :; done\n"
                                                      "exec $PERF \"$@\" -p {2},$(cat {1})\n",
                                                      folder.path().string(), file.string(), pid));
  auto arguments = bpf_record(pid, data());
  arguments.insert(arguments.end(), {"--perf", perf});
  RunningRecord running{arguments};
  const auto child = contents_of(file);
  work(child, std::chrono::milliseconds{300});
  ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  EXPECT_EQ(contents_of(folder / "starts"), "\n\n");
  const auto [right, all] = count(child, {"<module>", "have_child", "burn"});
  EXPECT_GE(right, 50U) << "of " << all << "\n" << running.child().err();
}

// perf has heard of it when this tool looks for its events.
TEST_F(BpfTargets, WhoseEndIsPerfsBeforeTheAttachHaveExited) {
  for (const auto* const engine : {"bpf", "auto"}) {
    SCOPED_TRACE(engine);
    const TempDir folder;
    ServedTree target{*plain_interpreter(13)};
    const auto perf =
        stand_in_perf(folder, fmt::format("pipes=${{5#fd:}}\n"
                                          "$PERF record -q -o {} -- true\n"
                                          "kill -KILL {}\n"
                                          "read ping </proc/self/fd/${{pipes%,*}}\n"
                                          "printf 'ack\\n\\0' >/proc/self/fd/${{pipes#*,}}\n",
                                          data(), target.pid()));
    const auto result = run_tool({"record", "--engine", engine, "-p", target.pid(), "--perf", perf,
                                  "-o", data(), "--", "sleep", "60"});
    EXPECT_EQ(result.status, ExitStatus{}) << result.err;
    EXPECT_THAT(result.err, HasSubstr("the target exited before the recording was to end"));
    EXPECT_THAT(result.err, Not(HasSubstr("cannot be attached")));
  }
}

// A perf that is not the process that was started has its events in another one. Then they cannot
// be found.
TEST_F(BpfTargets, OfAPerfWhoseEventsCannotBeFoundTheTrampolineIsTheChoice) {
  const TempDir folder;
  const auto perf = stand_in_perf(folder, "$PERF \"$@\"\nexit $?\n");
  ServedTree target{*plain_interpreter(13)};
  auto arguments = bpf_record(target.pid(), data());
  arguments.insert(arguments.end(), {"--perf", perf});
  auto refused = arguments;
  refused.insert(refused.begin(), "record");
  refused.insert(refused.end(), {"--", "true"});
  const auto result = run_tool(refused);
  EXPECT_EQ(result.status, (ExitStatus{.code = 125}));
  EXPECT_THAT(result.err, HasSubstr("error: --engine bpf: the program cannot be attached"));
  EXPECT_FALSE(filesystem::exists(data())) << "nothing was recorded";
  std::ranges::replace(arguments, "bpf", "auto");
  const auto stats = folder / "stats.json";
  arguments.insert(arguments.end(), {"--stats", stats});
  RunningRecord running{arguments};
  EXPECT_EQ(trampoline_of(target.pid()), "on by us");
  target.serve(100);
  ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  EXPECT_THAT(running.child().err(), HasSubstr("warning: --engine auto: the program cannot be"));
  EXPECT_THAT(running.child().err(), Not(HasSubstr("read by BPF"))) << "the trampoline is on";
  EXPECT_EQ(counters_in(stats).at("Activated"), 1) << "of one engine only";
  EXPECT_GE(count_named(read_samples("perf", data())).innermost, 95) << running.child().err();
  EXPECT_EQ(trampoline_of(target.pid()), "off");
}

TEST_F(BpfTargets, ThatEndMeanwhileKeepTheirNames) {
  for (const bool killed : {false, true}) {
    SCOPED_TRACE(killed);
    ServedTree target{*plain_interpreter(13)};
    RunningRecord running{bpf_record(target.pid(), data())};
    target.serve(150);
    if (killed) {
      target.process().child().signal(SIGKILL);
    } else {
      EXPECT_EQ(target.finish(), ExitStatus{});
    }
    EXPECT_EQ(running.wait(), ExitStatus{});
    const auto& messages = running.child().err();
    EXPECT_THAT(messages, HasSubstr("the target exited before the recording was to end"));
    EXPECT_THAT(messages, Not(HasSubstr("error:")));
    const auto named = count_named(read_samples("perf", data()));
    EXPECT_GE(named.samples, 200U) << messages;
    EXPECT_GE(named.whole, 95) << messages;
  }
}

// Of an earlier process with that number, which ran the same program with the trampoline: its
// addresses say nothing of this one.
TEST_F(BpfTargets, AMapOfAnotherProcessIsNotBelieved) {
  ServedTree target{*plain_interpreter(13)};
  const auto map = fmt::format("/tmp/perf-{}.map", target.pid());
  std::ofstream{map} << "7fb6572f8000 200 py::burn_method:<string>\n"
                        "7fb6572f8200 200 py::request:<string>\n";
  filesystem::last_write_time(map, filesystem::file_time_type::min());
  RunningRecord running{bpf_record(target.pid(), data())};
  target.serve(100);
  ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  const auto named = count_named(read_samples("perf", data()));
  EXPECT_GE(named.samples, 100U);
  EXPECT_GE(named.whole, 90) << running.child().err();
}

// What the process has of the kernel's BPF objects, by the commands of bpf(2) that look for them.
std::set<std::pair<int, std::uint32_t>> bpf_objects_of(base::Pid pid) {
  std::set<std::pair<int, std::uint32_t>> objects;
  const auto folder = fmt::format("/proc/{}/fdinfo", pid.value());
  for (const auto& entry : filesystem::directory_iterator{folder}) {
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
  attributes.prog_id = object.second;  // the same place as map_id
  const base::UniqueFd fd{
      static_cast<int>(::syscall(SYS_bpf, object.first, &attributes, sizeof(attributes)))};
  return fd.valid();
}

// The kernel frees them a while after the last descriptor is closed.
void expect_gone(const std::set<std::pair<int, std::uint32_t>>& objects) {
  const auto deadline = Deadline::after(seconds{20});
  for (const auto& object : objects) {
    while (exists(object) && !deadline.expired()) {
      ::sched_yield();
    }
    EXPECT_FALSE(exists(object)) << "object " << object.second << " of the kernel is left";
  }
}

TEST_F(BpfTargets, NothingIsLeftInTheKernelAfterARecording) {
  ServedTree target{*plain_interpreter(15)};
  RunningRecord running{bpf_record(target.pid(), data())};
  const auto objects = bpf_objects_of(running.child().pid());
  EXPECT_GE(objects.size(), 2U) << "a program and a map at least";
  EXPECT_TRUE(std::ranges::all_of(objects, exists));
  EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  expect_gone(objects);
}

TEST_F(BpfTargets, NothingIsLeftOfAToolThatIsKilled) {
  const Guards guards;
  ServedTree target{*plain_interpreter(15)};
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
