// The time until the BPF engine is attached to perf's events: perf gives up, has no suitable
// events, or ends; children are forked in the meantime.
#include "e2e/bpf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "support/cpu_time.hpp"
#include "support/find_perf.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/stand_in_perf.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

#include <sched.h>

namespace pyinject::test {
namespace {

namespace filesystem = std::filesystem;
using base::Deadline;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;

class BpfStart : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
    if (!plain_interpreter(13)) {
      GTEST_SKIP() << "no CPython 3.13 (scripts/pythons)";
    }
  }
  [[nodiscard]] std::string data() const { return directory_ / "data"; }
  [[nodiscard]] std::set<std::string> sampled_processes() const {
    std::set<std::string> pids;
    for (const auto& sample : samples_without_kernel_names(data())) {
      pids.insert(sample.pid);
    }
    return pids;
  }

 private:
  TempDir directory_;
};

// A perf that gives up once, as it does if a thread ends while it opens its events. First it runs
// FIRST.
std::string giving_up_perf(const TempDir& directory, const std::string& first = ":") {
  return stand_in_perf(directory, fmt::format("if [ ! -e {0}/gave_up ]; then\n"
                                              "  {1}; : > {0}/gave_up\n"
                                              "  echo 'Error: No such process' >&2\n"
                                              "  exit 255\n"
                                              "fi\n"
                                              "exec $PERF \"$@\"\n",
                                              directory.path().string(), first));
}

// perf gives up if a thread ends while it opens its events; by then it has renamed an earlier file.
// Here a stand-in gives up in the first recording. Then the whole system is recorded instead.
TEST_F(BpfStart, RunsPerfAgainWhenItGivesUp) {
  const TempDir directory;
  const auto perf = giving_up_perf(directory, fmt::format("mv {0} {0}.old; : > {0}", data()));
  std::ofstream{data()} << "earlier";
  ServedTree target{*plain_interpreter(13), on_request()};
  auto arguments = bpf_record(target.pid(), data());
  arguments.insert(arguments.end(), {"--perf", perf});
  RunningRecord running{arguments};
  target.serve(10, milliseconds{400});
  ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  ASSERT_TRUE(std::filesystem::exists(directory.path() / "gave_up"));
  EXPECT_EQ(contents_of(data() + ".old"), "earlier") << running.child().err();
  EXPECT_EQ(sampled_processes(), std::set<std::string>{target.pid()}) << running.child().err();
  expect_right(count_named(read_samples("perf", data())), running.child().err());
  EXPECT_EQ(target.finish(), ExitStatus{});
}

TEST_F(BpfStart, FallsBackToTheTrampolineIfNoEventTakesAProgram) {
  const std::vector<std::string> here{targets_dir() + "/without", "event-programs", tool()};
  const ServedTree idle{*plain_interpreter(13), on_request()};
  for (const auto* const perf : {"perf", "perf6.12", "perf7"}) {
    SCOPED_TRACE(perf);
    const auto path = find_perf(perf);
    if (!path) {
      continue;
    }
    auto refused = here;
    refused.insert(refused.end(), {"record", "--engine", "bpf", "-p", idle.pid(), "-e", "cpu-clock",
                                   "--perf", *path, "-o", data(), "--", "true"});
    const auto result = run(refused);
    EXPECT_EQ(result.status, (ExitStatus{.code = 125})) << result.err;
    EXPECT_THAT(result.err, HasSubstr("none of the sampling events takes it"));
    EXPECT_FALSE(filesystem::exists(data())) << "nothing was recorded";
  }
  const ServedTree target{*plain_interpreter(13)};
  RunningRecord running{{"--engine", "auto", "-p", target.pid(), "-e", "cpu-clock", "-o", data()},
                        here};
  EXPECT_EQ(trampoline_of(target.pid()), "on by us");
  EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  EXPECT_THAT(running.child().err(), HasSubstr("the trampoline is used instead"));
}

// Samples of tracepoints are not dropped in the kernel, where a program would drop them for every
// perf: perf must not record the whole system then, even after it gave up.
TEST_F(BpfStart, RecordsNoOtherProcessWithTracepoints) {
  if (!has_tracepoints()) {
    GTEST_SKIP() << "no tracefs is mounted";
  }
  const TempDir directory;
  const auto perf = giving_up_perf(directory);
  ServedTree target{*plain_interpreter(13), on_request()};
  auto arguments = bpf_record(target.pid(), data());
  arguments.insert(arguments.end(), {"-e", kTracepoint, "--perf", perf});
  RunningRecord running{arguments};
  target.serve(10, milliseconds{400});
  ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  ASSERT_TRUE(filesystem::exists(directory.path() / "gave_up"));
  EXPECT_EQ(sampled_processes(), std::set<std::string>{target.pid()}) << running.child().err();
}

// Forks on SIGUSR1 and writes the child's pid to a file. The child works.
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

// Starts a thread on SIGUSR1, waits for its end, and then makes the file.
constexpr auto kStartsThreadBySignal = R"(
import os, signal, sys, threading
def burn():
    for _ in range(3000):
        pass
def have_thread(*_):
    thread = threading.Thread(target=burn)
    thread.start()
    thread.join()
    open(sys.argv[1], "w").close()
signal.signal(signal.SIGUSR1, have_thread)
print("ready", flush=True)
while True:
    burn()
)";

class SignalledTarget {
 public:
  explicit SignalledTarget(const char* program = kForksBySignal)
      : process_{*plain_interpreter(13),
                 program,
                 {.interpreter_args = {}, .args = {file()}, .child = {}}} {}

  [[nodiscard]] std::string pid() const { return std::to_string(process_.pid().value()); }
  // The file for the child's pid.
  [[nodiscard]] std::string file() const { return directory_ / "child"; }
  // Makes it fork and returns the child's pid. Removes the file for the next child.
  [[nodiscard]] std::string fork() {
    process_.child().signal(SIGUSR1);
    const auto deadline = Deadline::after(kPatience);
    while (!filesystem::exists(file()) && !deadline.expired()) {
      ::sched_yield();
    }
    auto child = contents_of(file());
    filesystem::remove(file());
    return child;
  }

 private:
  TempDir directory_;
  PythonProcess process_;
};

// A child forked before perf has opened its events (here a stand-in waits for the child) is unknown
// to perf. perf is started again, here with the child's pid, and then the child has the same as its
// parent.
TEST_F(BpfStart, ChildrenThatAreForkedWhilePerfStartsAreKnown) {
  const TempDir directory;
  const SignalledTarget target;
  const auto perf =
      stand_in_perf(directory, fmt::format("echo >> {0}/starts\n"
                                           "[ -e {1} ] || kill -USR1 {2}\n"
                                           "until [ -e {1} ]; do :; done\n"
                                           "exec $PERF \"$@\" -p {2},$(cat {1})\n",
                                           directory.path().string(), target.file(), target.pid()));
  auto arguments = bpf_record(target.pid(), data());
  arguments.insert(arguments.end(), {"--perf", perf});
  RunningRecord running{arguments};
  const auto child = contents_of(target.file());
  wait_for_cpu_time(base::Pid{std::stoi(child)}, milliseconds{500});
  ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  EXPECT_EQ(contents_of(directory / "starts"), "\n\n");
  const auto [right, all] = count_chain(data(), child, {"<module>", "have_child", "burn"});
  EXPECT_GE(right, 50U) << "of " << all << "\n" << running.child().err();
}

// A thread that has come and gone before the program is attached may have left its events to its
// starter. perf is started again, as often as this happens; here once.
TEST_F(BpfStart, ThreadsThatComeAndGoWhilePerfStartsAreNoticed) {
  const TempDir directory;
  const SignalledTarget target{kStartsThreadBySignal};
  const auto perf =
      stand_in_perf(directory, fmt::format("echo >> {0}/starts\n"
                                           "[ -e {1} ] || kill -USR1 {2}\n"
                                           "until [ -e {1} ]; do :; done\n"
                                           "exec $PERF \"$@\"\n",
                                           directory.path().string(), target.file(), target.pid()));
  auto arguments = bpf_record(target.pid(), data());
  arguments.insert(arguments.end(), {"--perf", perf, "--stats", directory / "stats"});
  RunningRecord running{arguments};
  wait_for_cpu_time(base::Pid{std::stoi(target.pid())}, milliseconds{200});
  ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  EXPECT_EQ(contents_of(directory / "starts"), "\n\n") << running.child().err();
  EXPECT_EQ(bpf_figures(directory / "stats")["unmatched"], 0) << running.child().err();
}

// perf knows of the exit by the time this tool looks for perf's events.
TEST_F(BpfStart, ReportsATargetThatExitsBeforeTheAttach) {
  for (const auto* const engine : {"bpf", "auto"}) {
    SCOPED_TRACE(engine);
    const TempDir directory;
    ServedTree target{*plain_interpreter(13)};
    const auto perf =
        stand_in_perf(directory, fmt::format("pipes=${{5#fd:}}\n"
                                             "$PERF record -q -o {} -- true\n"
                                             "kill -KILL {}\n"
                                             "read ping </proc/self/fd/${{pipes%,*}}\n"
                                             "printf 'ack\\n\\0' >/proc/self/fd/${{pipes#*,}}\n",
                                             data(), target.pid()));
    const auto result = run_tool({"record", "--engine", engine, "-p", target.pid(), "--perf", perf,
                                  "-o", data(), "--", "sleep", "60"});
    EXPECT_EQ(result.status, ExitStatus{}) << result.err;
    EXPECT_THAT(result.err, HasSubstr("the target exited before the end of the recording"));
    EXPECT_THAT(result.err, Not(HasSubstr("cannot be attached")));
  }
}

// Processes that perf does not record are not waited for: children of pre-existing children, and
// with -i all children.
TEST_F(BpfStart, ChildrenThatPerfLeavesOutAreNotWaitedFor) {
  for (const bool without_all : {false, true}) {
    SCOPED_TRACE(without_all);
    const TempDir directory;
    SignalledTarget target;
    const auto child = target.fork();
    const auto perf = stand_in_perf(directory, fmt::format("echo >> {0}/starts\n"
                                                           "kill -USR1 {2}\n"
                                                           "until [ -e {1} ]; do :; done\n"
                                                           "exec $PERF \"$@\"\n",
                                                           directory.path().string(), target.file(),
                                                           without_all ? target.pid() : child));
    auto arguments = bpf_record(target.pid(), data());
    arguments.insert(arguments.end(), {"--perf", perf});
    if (without_all) {
      arguments.emplace_back("-i");
    }
    RunningRecord running{arguments};
    EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
    EXPECT_EQ(contents_of(directory / "starts"), "\n");
    EXPECT_THAT(running.child().err(), Not(HasSubstr("start all the time")));
  }
}

// If perf runs in a child of the process that was started, its events cannot be found.
TEST_F(BpfStart, FallsBackToTheTrampolineIfPerfsEventsCannotBeFound) {
  const TempDir directory;
  const auto perf = stand_in_perf(directory, "$PERF \"$@\"\nexit $?\n");
  ServedTree target{*plain_interpreter(13)};
  auto arguments = bpf_record(target.pid(), data());
  arguments.insert(arguments.end(), {"--perf", perf});
  auto refused = arguments;
  refused.insert(refused.begin(), "record");
  refused.insert(refused.end(), {"--", "true"});
  const auto result = run_tool(refused);
  EXPECT_EQ(result.status, (ExitStatus{.code = 125}));
  EXPECT_THAT(result.err, HasSubstr("error: --engine bpf: the BPF program cannot be attached"));
  EXPECT_FALSE(filesystem::exists(data())) << "nothing was recorded";
  std::ranges::replace(arguments, "bpf", "auto");
  const auto stats = directory / "stats.json";
  arguments.insert(arguments.end(), {"--stats", stats});
  RunningRecord running{arguments};
  EXPECT_EQ(trampoline_of(target.pid()), "on by us");
  target.serve(10, milliseconds{400});
  ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  EXPECT_THAT(running.child().err(),
              HasSubstr("warning: --engine auto: the BPF program cannot be"));
  EXPECT_THAT(running.child().err(), Not(HasSubstr("attached read-only")))
      << "the trampoline is used";
  EXPECT_EQ(counters_in(stats).at("Activated"), 1) << "counted for one engine only";
  EXPECT_GE(count_named(read_samples("perf", data())).any, 95) << running.child().err();
  EXPECT_EQ(trampoline_of(target.pid()), "off");
}

}  // namespace
}  // namespace pyinject::test
