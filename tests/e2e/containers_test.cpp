// Targets in their own namespaces and file systems, which disappear with them; and the tool itself
// inside a container.
#include "e2e/contained_python.hpp"
#include "e2e/served_tree.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include <unistd.h>

namespace pyinject::test {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::Each;
using testing::Field;
using testing::HasSubstr;
using testing::Not;

constexpr std::chrono::milliseconds kSpan{300};  // of CPU time

// One per minor version that has its own root.
std::vector<Interpreter> rooted_interpreters() {
  return interpreters({.root = true, .each_version = Prefer::kChrooted});
}

// The samples of one process, and the percentage that has exactly the functions of WORK ("work_",
// "born_") in NAME's program.
struct Share {
  std::size_t samples = 0;
  double percent = 0;
};
Share share_of(const std::vector<ScriptSample>& samples, const std::string& pid,
               const std::string& work, const std::string& name) {
  const Chain wanted{"<module>", "main_" + name, work + name, "burn_" + name};
  Share share;
  double right = 0;
  for (const auto& sample : samples) {
    if (sample.user && sample.pid == pid) {
      ++share.samples;
      right += sample.python == wanted ? 1 : 0;
    }
  }
  share.percent = share.samples == 0 ? 0 : 100.0 * right / static_cast<double>(share.samples);
  return share;
}

// The process that called FUNCTION.
std::string process_in(const std::vector<ScriptSample>& samples, const std::string& function) {
  const auto found = std::ranges::find_if(samples, [&](const ScriptSample& sample) {
    return std::ranges::find(sample.python, function) != sample.python.end();
  });
  return found == samples.end() ? "" : found->pid;
}

class Containers : public testing::TestWithParam<Interpreter> {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "namespaces need root";
    }
  }
  [[nodiscard]] std::string data() const { return directory_ / "perf.data"; }

 private:
  TempDir directory_;
};

// Each has pid 1 in its own namespace and the same map path.
TEST_P(Containers, KeepTheirNamesWhenTheyDieDuringTheRecording) {
  std::list<ContainedPython> pythons;
  for (const auto kind : kAllContainers) {
    if (kind != Container::kUserNamespace || user_namespaces_work()) {
      pythons.emplace_back(GetParam(), kind);
    }
  }
  std::vector<std::string> arguments{"-F", "999", "-e", "cpu-clock", "-o", data()};
  for (const auto& python : pythons) {
    EXPECT_EQ(python.inner_pid(), "1");
    arguments.insert(arguments.end(), {"-p", python.pid()});
  }
  RunningRecord running{arguments};
  for (auto& python : pythons) {
    python.work(kSpan);
    python.fork(kSpan);
    python.kill();
  }
  EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();

  const auto samples = read_samples("perf", data());
  const auto report = run({"perf", "report", "--stdio", "--no-inline", "-g", "none", "-i", data()});
  for (const auto& python : pythons) {
    SCOPED_TRACE(python.name());
    EXPECT_THAT(report.out, HasSubstr("py::burn_" + python.name() + ":<string>"));
    const auto work = share_of(samples, python.pid(), "work_", python.name());
    EXPECT_GE(work.samples, 20U);
    EXPECT_GE(work.percent, 90);
    const auto born =
        share_of(samples, process_in(samples, "born_" + python.name()), "born_", python.name());
    EXPECT_GE(born.samples, 20U);
    EXPECT_GE(born.percent, 85);
  }
}

INSTANTIATE_TEST_SUITE_P(Pythons, Containers, testing::ValuesIn(rooted_interpreters()),
                         InterpreterName{});

// The tool as a shell inside the container runs it: next to the program, with the container's pids.
class InContainer : public testing::Test {
 protected:
  void SetUp() override {
    const auto rooted = rooted_interpreters();
    if (::geteuid() != 0 || rooted.empty()) {
      GTEST_SKIP() << "namespaces need root, and an interpreter in a root of its own";
    }
    python_.emplace(rooted.front(), Container::kPrivateTmp);
  }
  [[nodiscard]] std::vector<std::string> inside(const std::string& dropped = "") const {
    std::vector<std::string> command{"nsenter", "--target", python_->pid(), "--pid", "--mount"};
    if (!dropped.empty()) {
      command.insert(command.end(), {"setpriv", "--inh-caps=" + dropped, "--ambient-caps=-all",
                                     "--bounding-set=" + dropped});
    }
    command.push_back(tool());
    return command;
  }
  [[nodiscard]] RunResult pyinject(const std::string& dropped,
                                   const std::vector<std::string>& arguments) const {
    auto command = inside(dropped);
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run(command);
  }
  [[nodiscard]] std::string data() const { return directory_ / "perf.data"; }

  std::optional<ContainedPython> python_;

 private:
  TempDir directory_;
};

// perf samples the whole machine, but processes outside the container have no pids in it.
TEST_F(InContainer, AllAreThoseOfTheContainer) {
  RunningRecord running{{"-a", "-F", "999", "-e", "cpu-clock", "-o", data()}, inside()};
  python_->work(4 * kSpan);
  EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  EXPECT_THAT(running.child().err(), Not(HasSubstr("python_too_old")));  // perf's own interpreter
  const auto samples = read_samples("perf", data());
  const auto work = share_of(samples, "1", "work_", python_->name());
  EXPECT_GE(work.samples, 20U);
  EXPECT_GE(work.percent, 90);
  EXPECT_THAT(samples, Each(Field("pid", &ScriptSample::pid, Not(AnyOf("0", "-1")))));
}

TEST_F(InContainer, RootWithoutRightsIsToldWhatItLacks) {
  const auto status = pyinject("-sys_ptrace", {"status", "-p", "1"});
  EXPECT_THAT(status.out,
              AllOf(HasSubstr("no_permission"), HasSubstr("root lacks CAP_SYS_PTRACE here"),
                    HasSubstr("docker run --cap-add SYS_PTRACE")));
  const auto recorded = pyinject("-sys_ptrace", {"record", "-p", "1", "-o", data()});
  EXPECT_EQ(recorded.status, (ExitStatus{.code = 125}));
  EXPECT_THAT(recorded.err, HasSubstr("root lacks CAP_SYS_PTRACE here"));
  const auto all = pyinject("-sys_ptrace,-perfmon,-sys_admin", {"status"});
  EXPECT_THAT(all.out, HasSubstr("could not be inspected: root lacks CAP_SYS_PTRACE here"));
}

TEST_F(InContainer, ProcOfAnotherNamespaceIsRefused) {
  const auto status = run({"unshare", "--pid", "--fork", tool(), "status"});
  EXPECT_EQ(status.status, (ExitStatus{.code = 125}));
  EXPECT_THAT(status.err, HasSubstr("/proc belongs to another pid namespace"));
}

}  // namespace
}  // namespace pyinject::test
