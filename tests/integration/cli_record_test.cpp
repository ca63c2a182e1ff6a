// The built tool with stock perf and every interpreter.
#include "procfs/stat.hpp"
#include "procfs/tasks.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "pyinject/record/plan.hpp"
#include "support/child_process.hpp"
#include "support/find_perf.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/python_process.hpp"
#include "support/temp_dir.hpp"
#include "support/until_worked.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <regex>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pyinject {
namespace {

using record::kFailure;
using testing::HasSubstr;

constexpr const char* kService = R"(
class Service:
    def leaf(self, n):
        total = 0
        for i in range(n):
            total += i * i
        return total
    def handle(self):
        return self.leaf(2000)
def main():
    service = Service()
    print('ready', flush=True)
    while True:
        service.handle()
main()
)";

test::RunResult tool(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), test::tool());
  return test::run(arguments);
}

// The result of recording PID until it has worked for 300 ms.
test::RunResult recorded(base::Pid pid, const std::vector<std::string>& options) {
  std::vector<std::string> arguments{"record", "-p", std::to_string(pid.value()), "-F", "499"};
  const auto command = test::until_worked(pid, std::chrono::milliseconds{300});
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.emplace_back("--");
  arguments.insert(arguments.end(), command.begin(), command.end());
  return tool(std::move(arguments));
}

// A pidfd of the child of PARENT whose name starts with NAME.
base::UniqueFd child_named(const std::string& name, base::Pid parent) {
  for (const auto pid : procfs::list_processes()) {
    const auto stat = procfs::read_stat(pid);
    if (stat && stat->parent == parent && stat->name.starts_with(name)) {
      return base::UniqueFd{static_cast<int>(::syscall(SYS_pidfd_open, pid.value(), 0))};
    }
  }
  return {};
}

class RecordsPython : public testing::TestWithParam<test::Interpreter> {};

TEST_P(RecordsPython, NamesItsFunctions) {
  test::PythonProcess python{GetParam(), kService};
  const test::TempDir directory;
  const std::string data = directory / "perf.data";
  const std::string pid = std::to_string(python.pid().value());
  const auto record = recorded(python.pid(), {"-o", data});
  EXPECT_EQ(record.status, test::ExitStatus{}) << record.err;
  EXPECT_THAT(record.err, HasSubstr("pid " + pid + ": Python "));
  EXPECT_THAT(record.err, HasSubstr("next: perf report -i " + data));
  EXPECT_EQ(record.out, "");
  const auto script = test::run({"perf", "script", "-i", data, "-F", "ip,sym"});
  EXPECT_THAT(script.out, HasSubstr("py::Service.leaf"));
  EXPECT_THAT(tool({"status", "-p", pid}).out, HasSubstr(" ready "));
  python.expect_alive();
  EXPECT_EQ(python.terminate().signal, SIGTERM);
  const auto after = test::run({"perf", "script", "-i", data, "-F", "ip,sym"});
  EXPECT_THAT(after.out, HasSubstr("py::Service.leaf")) << "after the target's exit";
}

// Others of the machine may be busier than it: in a pid namespace of its own, it is the only
// Python.
TEST_P(RecordsPython, FindsItWithoutArguments) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "a pid namespace of its own takes root";
  }
  constexpr auto kAlone = R"(tool=$1; shift
"$@" & echo $!
read word
exec "$tool")";
  std::vector<std::string> argv{"unshare", "-mpf", "--mount-proc", "--kill-child", "sh",
                                "-c",      kAlone, "sh",           test::tool()};
  argv.insert(argv.end(), GetParam().command.begin(), GetParam().command.end());
  argv.insert(argv.end(), {"-c", kService});
  test::ChildProcess alone{argv};
  std::string pid;
  for (int i = 0; i < 2; ++i) {  // the pid and `ready`, in any order
    const auto line = alone.read_line(base::Deadline::after(test::kPatience)).value_or("");
    pid = line == "ready" ? pid : line;
  }
  alone.write("\n");
  EXPECT_EQ(alone.wait(base::Deadline::after(test::kPatience)), test::ExitStatus{}) << alone.err();
  const auto row = fmt::format("(^|\n) *{} +[^ ]+ +[1-9][0-9]* +3\\.[^ ]+  [^\n]*\n", pid);
  EXPECT_TRUE(std::regex_search(alone.out(), std::regex{row})) << alone.out();
  EXPECT_THAT(alone.out(), HasSubstr("what it is busy with  perf-pyinject top -p " + pid));
}

TEST_P(RecordsPython, ActivatesAndDeactivates) {
  test::PythonProcess python{GetParam(), kService};
  const std::string pid = std::to_string(python.pid().value());
  EXPECT_EQ(tool({"activate", "-p", pid}).status, test::ExitStatus{});
  EXPECT_THAT(tool({"status", "-p", pid}).out, HasSubstr("on by us"));
  const auto off = tool({"deactivate", "-p", pid});
  EXPECT_EQ(off.status, test::ExitStatus{}) << off.err;
  EXPECT_EQ(off.err, "perf-pyinject: pid " + pid + ": trampoline off\n");
  EXPECT_THAT(tool({"deactivate", "-p", pid}).err, HasSubstr("already off"));
  python.expect_alive();
}

TEST_P(RecordsPython, LeavesOnWhatIsOnByItself) {
  test::PythonOptions on_by_itself;
  on_by_itself.interpreter_args = {"-X", "perf"};
  test::PythonProcess python{GetParam(), kService, on_by_itself};
  const test::TempDir directory;
  const std::string pid = std::to_string(python.pid().value());
  const auto record = tool({"record", "-p", pid, "-o", directory / "x", "--", "true"});
  EXPECT_EQ(record.status, test::ExitStatus{}) << record.err;
  EXPECT_THAT(record.err, HasSubstr("trampoline was already on by itself; left on"));
  EXPECT_THAT(tool({"status", "-p", pid}).out, HasSubstr("on by itself"));
}

// With copies of the stacks, it even has the Python functions; perf 7 does not unwind to them.
TEST_P(RecordsPython, PerfCompletesItsFileWhenTheToolIsKilled) {
  test::PythonProcess python{GetParam(), kService};
  const test::TempDir directory;
  const std::string data = directory / "perf.data";
  std::vector<std::string> argv{
      test::tool(),   "record",      "-p", std::to_string(python.pid().value()),
      "-F",           "499",         "-o", data,
      "--call-graph", "dwarf,16384", "--"};
  const auto command = test::until_worked(python.pid(), std::chrono::milliseconds{200},
                                          "echo recorded; read line || :");
  argv.insert(argv.end(), command.begin(), command.end());
  test::ChildProcess record{argv};
  ASSERT_EQ(record.read_line(base::Deadline::after(test::kPatience)), "recorded");
  const auto perf = child_named("perf", record.pid());
  ASSERT_TRUE(perf.valid());
  record.signal(SIGKILL);
  pollfd ended{.fd = perf.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&ended, 1, test::kPatienceMs), 1) << "perf keeps running";
  const auto script = test::run({"perf", "script", "-i", data, "-F", "ip,sym"});
  EXPECT_EQ(script.status, test::ExitStatus{}) << script.err;
  EXPECT_NE(script.out, "");
  // A killed tool copies no map out of a chroot.
  if (GetParam().root.empty() && test::version_of_perf("perf").first < 7) {
    EXPECT_THAT(script.out, HasSubstr("py::Service.leaf"));
  }
  python.expect_alive();
}

INSTANTIATE_TEST_SUITE_P(Pythons, RecordsPython,
                         testing::ValuesIn(test::interpreters({.both_ways = true})),
                         test::InterpreterName{});

// If standard output is a pipe, as it is here, perf's data goes there only with `-o -`.
TEST(RecordBesideAPipe, WritesPerfData) {
  const auto found = test::interpreters();
  if (found.empty()) {
    GTEST_SKIP() << "no interpreter (scripts/pythons)";
  }
  test::PythonProcess python{found.front(), kService};
  const std::string pid = std::to_string(python.pid().value());
  for (const auto* const engine : {"trampoline", "auto"}) {
    const test::TempDir directory;
    const auto recorded = test::run(
        {test::tool(), "record", "--engine", engine, "-e", "cpu-clock", "-p", pid, "--", "true"},
        {.child = {.env = {},
                   .unset = {},
                   .uid = {},
                   .directory = directory.path().string(),
                   .root = {}},
         .input = {}});
    EXPECT_EQ(recorded.status, test::ExitStatus{}) << recorded.err;
    EXPECT_EQ(recorded.out, "") << engine;
    EXPECT_THAT(recorded.err, Not(HasSubstr("pipe"))) << engine;
    EXPECT_TRUE(test::contents_of(directory / "perf.data").starts_with("PERFILE2")) << engine;
  }
}

// Nothing can be added to a pipe afterwards.
TEST(RecordIntoAPipe, IsTheTrampolinesOnly) {
  const auto found = test::interpreters();
  if (found.empty()) {
    GTEST_SKIP() << "no interpreter (scripts/pythons)";
  }
  test::PythonProcess python{found.front(), kService};
  const std::string pid = std::to_string(python.pid().value());
  for (const auto* const option : {"--engine=bpf", "--off-cpu"}) {
    const auto refused = tool({"record", option, "-o", "-", "-p", pid, "--", "true"});
    EXPECT_EQ(refused.status, (test::ExitStatus{.code = kFailure})) << option;
    EXPECT_THAT(refused.err, HasSubstr("perf writes to a pipe: name a file with -o")) << option;
    EXPECT_EQ(refused.out, "") << option;
  }
  const auto recorded = tool({"record", "--engine", "auto", "--gil", "--tasks", "-e", "cpu-clock",
                              "-o", "-", "-p", pid, "--", "true"});
  EXPECT_EQ(recorded.status, test::ExitStatus{}) << recorded.err;
  EXPECT_THAT(recorded.err,
              HasSubstr("warning: --engine auto: perf writes to a pipe; the trampoline is used "
                        "instead, without --gil and --tasks"));
  EXPECT_THAT(recorded.err, HasSubstr(": trampoline on, stopped"));
  EXPECT_TRUE(recorded.out.starts_with("PERFILE2"));
}

// The directory of --kcore cannot become a file.
TEST(RecordWithTheKernelsCode, IsTheTrampolinesOnly) {
  const auto found = test::interpreters();
  if (found.empty()) {
    GTEST_SKIP() << "no interpreter (scripts/pythons)";
  }
  test::PythonProcess python{found.front(), kService};
  const test::TempDir directory;
  const std::string pid = std::to_string(python.pid().value());
  for (const auto* const option : {"--engine=bpf", "--off-cpu"}) {
    const auto refused =
        tool({"record", option, "--kcore", "-p", pid, "-o", directory / "data", "--", "true"});
    EXPECT_EQ(refused.status, (test::ExitStatus{.code = kFailure})) << option;
    EXPECT_THAT(refused.err, HasSubstr("the kernel's code, too (--kcore): omit --kcore")) << option;
  }
}

class BadInput
    : public testing::TestWithParam<std::tuple<std::vector<std::string>, int, std::string>> {};

TEST_P(BadInput, HasItsMessageAndStatus) {
  const auto& [arguments, status, message] = GetParam();
  const auto result = tool(arguments);
  EXPECT_EQ(result.status, (test::ExitStatus{.code = status}));
  EXPECT_THAT(result.err, HasSubstr(message));
  EXPECT_THAT(result.err, HasSubstr("perf-pyinject: error: "));
  EXPECT_EQ(result.out, "");
}

INSTANTIATE_TEST_SUITE_P(
    Cases, BadInput,
    testing::Values(std::tuple{std::vector<std::string>{"recrod"}, 129, "unknown verb 'recrod'"},
                    std::tuple{std::vector<std::string>{"record", "-p", "4194304", "true"},
                               kFailure, "pid 4194304: "},
                    std::tuple{std::vector<std::string>{"record", "-p", "1", "no-such-command"},
                               127, "cannot run 'no-such-command'"},
                    std::tuple{std::vector<std::string>{"record", "-p", "1", "/etc/passwd"}, 126,
                               "cannot run '/etc/passwd': Permission denied"},
                    std::tuple{
                        std::vector<std::string>{"record", "-p", "1", "--perf", "/no/perf", "true"},
                        kFailure, "cannot run '/no/perf'"}));

TEST(Cli, PointsToTheHelpOfTheVerb) {
  EXPECT_THAT(tool({"dump", "--stpo"}).err, HasSubstr("see perf-pyinject dump --help\n"));
  EXPECT_THAT(tool({"dmup"}).err, HasSubstr("see perf-pyinject --help\n"));
}

TEST(Cli, RefusesAKernelThread) {
  for (const auto pid : procfs::list_processes()) {
    const auto stat = procfs::read_stat(pid);
    if (stat && stat->kernel_thread()) {
      const auto result = tool({"record", "-p", std::to_string(pid.value()), "true"});
      EXPECT_EQ(result.status.code, kFailure);
      EXPECT_THAT(result.err, HasSubstr("(kernel_thread)"));
      return;
    }
  }
  GTEST_SKIP() << "no kernel thread is visible here";
}

TEST(Cli, HelpAndVersionGoToStandardOutput) {
  EXPECT_THAT(tool({"--help"}).out, HasSubstr("usage: perf-pyinject VERB"));
  EXPECT_THAT(tool({"record", "--help"}).out, HasSubstr("--lenient"));
  EXPECT_EQ(tool({"help"}).out, tool({"--help"}).out);
  EXPECT_EQ(tool({"help", "dump"}).out, tool({"dump", "--help"}).out);
  EXPECT_THAT(tool({"--version"}).out, testing::StartsWith("perf-pyinject 0."));
}

}  // namespace
}  // namespace pyinject
