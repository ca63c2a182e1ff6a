// `join` adds Python stacks to a perf record that another user started.
#include "base/file.hpp"
#include "base/text.hpp"
#include "e2e/bpf_recording.hpp"
#include "e2e/expected_trees.hpp"
#include "e2e/isolated_machine.hpp"
#include "e2e/served_tree.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"
#include "support/bpf_engine.hpp"
#include "support/find_perf.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>

#include <unistd.h>

namespace pyinject::test {
namespace {

using base::Deadline;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

using Words = std::vector<std::string>;

// The command as users start it, without waiting.
Words user_perf(const std::string& perf, const std::string& data, const Words& options,
                const std::string& event = "cpu-clock") {
  // Without build-ids: an older perf, run by a test at the same time, would crash on records with
  // them.
  Words command{perf, "record", "--no-buildid-mmap", "-F", "999", "-e", event, "-o", data};
  command.insert(command.end(), options.begin(), options.end());
  return command;
}

std::string number_of(const ChildProcess& child) { return std::to_string(child.pid().value()); }

// Until perf has described its events in DATA: then it records. Nobody waits long for the file of a
// perf that has just started, and under load that takes long.
void await_header(
    const std::string& data,
    const std::function<void()>& work = [] { std::this_thread::sleep_for(milliseconds{5}); }) {
  const auto deadline = Deadline::after(kPatience);
  while (!base::read_file(data, 8).value_or("").starts_with("PERFILE2") && !deadline.expired()) {
    work();
  }
}

constexpr milliseconds kWhile{600};  // of CPU time

class BpfJoin : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
    perf_ = find_perf(GetParam());
    python_ = plain_interpreter(13);
    if (!perf_ || !python_) {
      GTEST_SKIP() << "no " << GetParam() << " or no Python 3.13 (scripts/pythons)";
    }
  }
  [[nodiscard]] const std::string& perf() const { return *perf_; }
  [[nodiscard]] const Interpreter& python() const { return *python_; }
  [[nodiscard]] std::string data() const { return directory_ / "data"; }
  [[nodiscard]] std::string stats() const { return directory_ / "stats.json"; }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator{directory_ / ""}) {
      names.push_back(entry.path().filename());
    }
    return names;
  }
  [[nodiscard]] Words join(const ChildProcess& running) const {
    return {tool(), "join", number_of(running), "--perf", perf(), "--stats", stats()};
  }

 private:
  TempDir directory_;
  std::optional<std::string> perf_;
  std::optional<Interpreter> python_;
};

TEST_P(BpfJoin, GivesWholeStacksFromThenOn) {
  PythonOptions options;
  options.args = {"long"};
  options.interpreter_args = {"-W", "ignore"};  // else warns that it forks with threads
  CallTreeServer target{python(), options};
  ChildProcess running{user_perf(perf(), data(), {"-g", "-k", "mono", "-p", target.pid()})};
  await_header(data(), [&] { target.work(1); });
  target.work(1, kWhile);
  ChildProcess joined{join(running)};
  await(joined, "joined perf record");
  const auto since = monotonic_now();
  (void)target.fork(5);
  target.work(1, kWhile);
  running.signal(SIGINT);
  ASSERT_TRUE(running.wait(Deadline::after(kPatience)));
  ASSERT_EQ(joined.wait(Deadline::after(kPatience)), ExitStatus{}) << joined.err();

  target.pause();
  const auto figures = bpf_figures(stats());
  const auto unmatched = figures["unmatched"].get<std::size_t>();
  const auto not_joined = figures["not_joined"].get<std::size_t>();
  EXPECT_GE(not_joined, 20U) << joined.err();
  const auto found = compare(perf(), data(), target.trees());
  const auto unreadable = said_unreadable(joined.err(), found.all.samples);
  EXPECT_GE(found.all.right + unmatched + unreadable, found.all.samples)
      << describe(found) << joined.err();
  EXPECT_EQ(found.others, 0U);
  const auto then = compare(perf(), data(), target.trees(), {"--time", since + ","});
  EXPECT_GE(then.all.right, 300U) << joined.err();
  EXPECT_GE(then.all.right + unreadable, then.all.samples) << describe(then) << joined.err();
  target.resume();
  EXPECT_EQ(target.finish(), ExitStatus{});
}

// A killed tool leaves neither files nor anything that prevents another tool from joining.
TEST_P(BpfJoin, LeavesPerfAsItWasWhenItIsKilled) {
  ServedTree target{python(), on_request()};
  ChildProcess running{user_perf(perf(), data(), {"-g", "-p", target.pid()})};
  await_header(data());
  std::optional<ChildProcess> joined{std::in_place, join(running)};
  await(*joined, "joined perf record");
  target.serve(20);
  joined->signal(SIGKILL);
  ASSERT_TRUE(joined->wait(Deadline::after(kPatience)));
  ChildProcess second{join(running)};
  await(second, "joined perf record");
  second.signal(SIGKILL);
  ASSERT_TRUE(second.wait(Deadline::after(kPatience)));
  target.serve(5, kWhile);
  running.signal(SIGINT);
  ASSERT_TRUE(running.wait(Deadline::after(kPatience)));
  EXPECT_THAT(running.err(), HasSubstr("Captured and wrote"));
  EXPECT_THAT(files(), testing::ElementsAre("data"));
  const auto samples = samples_without_kernel_names(data(), perf());
  EXPECT_GE(samples.size(), 50U);
  EXPECT_TRUE(std::ranges::all_of(
      samples, [](const ScriptedSample& sample) { return sample.innermost() == nullptr; }));
}

TEST_P(BpfJoin, LeavesPerfAtASignalAndPutsInWhatItHas) {
  ServedTree target{python(), on_request()};
  ChildProcess running{user_perf(perf(), data(), {"-g", "-p", target.pid()})};
  await_header(data());
  ChildProcess joined{join(running)};
  await(joined, "joined perf record");
  target.serve(5, kWhile);
  joined.signal(SIGINT);
  await(joined, "detached from perf record");
  target.serve(5, kWhile);
  EXPECT_TRUE(running.running());
  EXPECT_TRUE(joined.running()) << "the file is still incomplete";
  running.signal(SIGINT);
  ASSERT_TRUE(running.wait(Deadline::after(kPatience)));
  EXPECT_EQ(joined.wait(Deadline::after(kPatience)), (ExitStatus{.code = 130})) << joined.err();
  const auto samples = samples_without_kernel_names(data(), perf());
  const auto python = [](const ScriptedSample& sample) { return sample.innermost() != nullptr; };
  const auto with = std::ranges::count_if(samples, python);
  const auto last = std::find_if(samples.rbegin(), samples.rend(), python);
  EXPECT_GE(with, 50) << joined.err();
  EXPECT_GE(last - samples.rbegin(), 50) << joined.err();
}

TEST_P(BpfJoin, KeepsTheNamesNextToTheFileIfThereIsNoPerf) {
  ServedTree target{python(), on_request()};
  ChildProcess running{user_perf(perf(), data(), {"-g", "-k", "mono", "-p", target.pid()})};
  await_header(data());
  ChildOptions without;
  without.env["PATH"] = "/nonexistent";
  without.env["PERF"] = "";
  ChildProcess joined{{tool(), "join", number_of(running)}, without};
  await(joined, "joined perf record");
  target.serve(20, kWhile);
  running.signal(SIGINT);
  ASSERT_TRUE(running.wait(Deadline::after(kPatience)));
  ASSERT_EQ(joined.wait(Deadline::after(kPatience)), ExitStatus{}) << joined.err();
  EXPECT_THAT(files(), testing::UnorderedElementsAre("data", "data.names"));
  const auto samples = samples_without_kernel_names(data(), perf());
  const auto named = std::ranges::count_if(
      samples, [](const ScriptedSample& sample) { return sample.innermost() != nullptr; });
  EXPECT_GE(named, 50) << joined.err();
}

INSTANTIATE_TEST_SUITE_P(Perfs, BpfJoin, testing::Values("perf", "perf6.12", "perf7"),
                         [](const auto& each) {
                           auto name = each.param;
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

class BpfJoinOfOnePerf : public BpfJoin {};

// Processes that perf starts are found as they appear, and so is the Python that they exec.
TEST_P(BpfJoinOfOnePerf, FollowsWhatPerfHasStarted) {
  constexpr auto kProgram = R"(
import sys, subprocess, time
def spin():
    end = time.process_time() + 3
    while time.process_time() < end:
        for i in range(10_000):
            pass
if len(sys.argv) > 1:
    spin()
else:
    print('ready', flush=True)
    sys.stdin.readline()
    subprocess.run([sys.executable, __file__, 'later'], check=True)
)";
  TempDir directory;
  const auto program = directory.file("program.py", kProgram);
  auto command = user_perf(perf(), data(), {"-g", "--"});
  command.insert(command.end(), python().command.begin(), python().command.end());
  command.push_back(program);
  ChildProcess running{command};
  ASSERT_EQ(running.read_line(Deadline::after(kPatience)), "ready") << running.err();
  ChildProcess joined{join(running)};
  await(joined, "joined perf record");
  running.write("\n");
  ASSERT_EQ(running.wait(Deadline::after(kPatience)), ExitStatus{}) << running.err();
  ASSERT_EQ(joined.wait(Deadline::after(kPatience)), ExitStatus{}) << joined.err();
  const auto samples = samples_without_kernel_names(data(), perf());
  const auto spinning = std::ranges::count_if(samples, [](const ScriptedSample& sample) {
    return sample.chain() == Words{"<module>", "spin"};
  });
  EXPECT_GE(spinning, 100) << joined.err();
}

// The process may not even have exec'ed perf yet.
TEST_P(BpfJoinOfOnePerf, WaitsForAPerfThatBegins) {
  ServedTree target{python(), on_request()};
  ChildProcess joined{{"sh", "-c",
                       "perf record -F 999 -e cpu-clock -g -o \"$1\" -p \"$2\" 2> \"$1.err\" & "
                       "exec \"$0\" join $!",
                       tool(), data(), target.pid()}};
  await(joined, "joined perf record");
  target.serve(20);
  EXPECT_EQ(target.finish(), ExitStatus{});  // so perf ends as well
  EXPECT_EQ(joined.wait(Deadline::after(kPatience)), ExitStatus{}) << joined.err();
}

TEST_P(BpfJoinOfOnePerf, RefusesAPerfThatRunsAProgramAlready) {
  ServedTree target{python(), on_request()};
  ChildProcess running{user_perf(perf(), data(), {"-g", "-p", target.pid()})};
  await_header(data());
  ChildProcess joined{join(running)};
  await(joined, "joined perf record");
  const auto second = run(join(running));
  EXPECT_EQ(second.status, (ExitStatus{.code = 125}));
  EXPECT_THAT(second.err, HasSubstr("(has_program)"));
  target.serve(5, kWhile);
  running.signal(SIGINT);
  ASSERT_EQ(joined.wait(Deadline::after(kPatience)), ExitStatus{}) << joined.err();
  EXPECT_GE(bpf_figures(stats())["matched"], 50U) << "the first `join` was disturbed";
}

TEST_P(BpfJoinOfOnePerf, FailsWhenItsFileIsGone) {
  ServedTree target{python(), on_request()};
  ChildProcess running{user_perf(perf(), data(), {"-g", "-p", target.pid()})};
  await_header(data());
  ChildProcess joined{join(running)};
  await(joined, "joined perf record");
  target.serve(20);
  ASSERT_TRUE(std::filesystem::remove(data()));
  running.signal(SIGINT);
  EXPECT_EQ(joined.wait(Deadline::after(kPatience)), (ExitStatus{.code = 125})) << joined.err();
  EXPECT_THAT(joined.err(), HasSubstr(data() + ": perf's output was removed"));
  EXPECT_THAT(files(), testing::ElementsAre("stats.json")) << "no file replaces perf's";
}

// perf was killed and its header is missing: the file remains unchanged, with and without
// --keep-raw.
TEST_P(BpfJoinOfOnePerf, FailsWhenItsFileCannotBeCompleted) {
  ServedTree target{python(), on_request()};
  ChildProcess running{user_perf(perf(), data(), {"-g", "-p", target.pid()})};
  await_header(data());
  auto command = join(running);
  command.emplace_back("--keep-raw");
  ChildProcess joined{command};
  await(joined, "joined perf record");
  target.serve(20);
  std::filesystem::resize_file(data(), 48);  // removes the description of its events
  running.signal(SIGKILL);
  EXPECT_EQ(joined.wait(Deadline::after(kPatience)), (ExitStatus{.code = 125})) << joined.err();
  EXPECT_THAT(joined.err(), HasSubstr("the Python stacks are lost"));
  EXPECT_THAT(files(), testing::UnorderedElementsAre("data", "stats.json"));
}

// Without the tool, no program could read the file.
TEST_P(BpfJoinOfOnePerf, CompletesTheFileOfAPerfThatDies) {
  ServedTree target{python(), on_request()};
  ChildProcess running{user_perf(perf(), data(), {"-g", "-m", "16", "-p", target.pid()})};
  await_header(data());
  ChildProcess joined{join(running)};
  await(joined, "joined perf record");
  const auto deadline = Deadline::after(kPatience);
  while (std::filesystem::file_size(data()) < 100'000 && !deadline.expired()) {
    target.serve(5);
  }
  running.signal(SIGKILL);
  ASSERT_EQ(joined.wait(Deadline::after(kPatience)), ExitStatus{}) << joined.err();
  EXPECT_THAT(joined.err(), HasSubstr("died; " + data() + " has the samples written until then"));
  const auto samples = samples_without_kernel_names(data());
  EXPECT_GE(
      std::ranges::count_if(samples, [](const auto& one) { return one.innermost() != nullptr; }),
      50)
      << joined.err();
}

INSTANTIATE_TEST_SUITE_P(Perfs, BpfJoinOfOnePerf, testing::Values("perf"));

TEST(BpfJoinOfAMachine, ReadsAllPythonsAndThoseThatBeginLater) {
  const auto python = plain_interpreter(13);
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty() || !python || ::geteuid() != 0) {
    GTEST_SKIP() << lacks << " or no Python 3.13 (scripts/pythons), or not root";
  }
  const TempDir directory;
  const auto told =
      run_apart(directory, "joined.py", {fmt::format("{}", fmt::join(python->command, " "))});
  const auto messages = told.value("messages", "");
  EXPECT_EQ(told["status"], 0) << messages;
  EXPECT_THAT(names_in(directory / "data"), testing::IsSupersetOf({"early", "late"})) << messages;
}

struct Unjoinable {
  std::string reason;
  Words options;
  std::string event = "cpu-clock";
};

// NOLINTNEXTLINE(readability-identifier-naming): the name that GoogleTest looks for
void PrintTo(const Unjoinable& one, std::ostream* stream) { *stream << one.reason; }

class BpfJoinRefusal : public testing::TestWithParam<Unjoinable> {};

TEST_P(BpfJoinRefusal, NamesTheReason) {
  const auto python = plain_interpreter(13);
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty() || !python) {
    GTEST_SKIP() << lacks << " or no Python 3.13 (scripts/pythons)";
  }
  if (GetParam().event == kTracepoint && !has_tracepoints()) {
    GTEST_SKIP() << "no tracefs is mounted";
  }
  ServedTree target{*python, on_request()};
  const TempDir directory;
  auto options = GetParam().options;
  options.insert(options.end(), {"-p", target.pid()});
  ChildProcess running{user_perf("perf", directory / "data", options, GetParam().event)};
  const auto refused = run({tool(), "join", number_of(running)});
  EXPECT_EQ(refused.status, (ExitStatus{.code = 125}));
  EXPECT_THAT(refused.err, HasSubstr("(" + GetParam().reason + ")"));
  running.signal(SIGINT);
  EXPECT_TRUE(running.wait(Deadline::after(kPatience)));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, BpfJoinRefusal,
    testing::Values(Unjoinable{"pipe", {"-g", "-o", "-"}},
                    Unjoinable{"several_files", {"-g", "--switch-output=100s"}},
                    Unjoinable{"folder", {"-g", "--threads"}}, Unjoinable{"no_callchains", {}},
                    Unjoinable{"other_clock", {"-g"}, kTracepoint},
                    Unjoinable{"no_times", {"-g", "-i", "--per-thread"}}),
    [](const auto& each) { return each.param.reason; });

TEST(BpfJoinOfAnother, RefusesAPerfOfAnotherNamespace) {
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty() || ::geteuid() != 0) {
    GTEST_SKIP() << lacks << " or not root";
  }
  const TempDir directory;
  ChildProcess outside{{"unshare", "-mpf", "--mount-proc", "--kill-child", "perf", "record", "-g",
                        "-e", "cpu-clock", "-o", directory / "data", "--", "sh", "-c",
                        "echo ready; read word"}};
  ASSERT_EQ(outside.read_line(Deadline::after(kPatience)), "ready") << outside.err();
  const auto number = number_of(outside);
  const auto inside = base::read_file(fmt::format("/proc/{0}/task/{0}/children", number));
  const auto refused = run({tool(), "join", std::string{base::trim(inside.value_or(""))}});
  EXPECT_EQ(refused.status, (ExitStatus{.code = 125}));
  EXPECT_THAT(refused.err, HasSubstr("(other_namespace)"));
  outside.write("\n");
  EXPECT_TRUE(outside.wait(Deadline::after(kPatience)));
}

// The command line of a program that is not perf names a process of root.
TEST(BpfJoinOfAnother, ReadsNoProcessThatItsUserMayNotRecord) {
  const auto python = plain_interpreter(13);
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty() || !python || ::geteuid() != 0) {
    GTEST_SKIP() << lacks << " or no Python 3.13 (scripts/pythons), or not root";
  }
  ServedTree target{*python, on_request()};
  const TempDir directory;
  std::filesystem::permissions(directory.path(), std::filesystem::perms::all);
  const auto data = directory / "data";
  ASSERT_EQ(run(user_perf("perf", data, {"-g", "--", "true"})).status, ExitStatus{});
  std::filesystem::permissions(data, std::filesystem::perms::all);
  ChildOptions nobody;
  nobody.uid = kNobody;
  ChildProcess disguised{{"python3", "-c",
                          "import sys\nfile = open(sys.argv[-1])\nprint('open', flush=True)\n"
                          "sys.stdin.read()",
                          "record", "-g", "-p", target.pid(), "-o", data},
                         nobody};
  ASSERT_EQ(disguised.read_line(Deadline::after(kPatience)), "open");
  const auto joined = run({tool(), "join", number_of(disguised)});
  EXPECT_EQ(joined.status, (ExitStatus{.code = 125}));
  EXPECT_THAT(joined.err, AllOf(HasSubstr("perf record to uid 65534, which may not record it"),
                                HasSubstr("no Python process that can be read")));
}

TEST(BpfJoinOfAnother, RefusesWhatIsNoPerfRecord) {
  ChildProcess other{{"cat"}};
  const auto refused = run({tool(), "join", number_of(other)});
  EXPECT_EQ(refused.status, (ExitStatus{.code = 125}));
  EXPECT_THAT(refused.err, HasSubstr("(not_perf)"));
}

}  // namespace
}  // namespace pyinject::test
