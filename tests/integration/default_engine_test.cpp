// Engines that are set outside of the command line, or chosen by what suits the targets.
#include "pyinject/record/plan.hpp"
#include "support/bpf_engine.hpp"
#include "support/child_process.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/python_process.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/resource.h>

namespace pyinject::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kOneThread = R"(
print('ready', flush=True)
input()
)";

constexpr const char* kDaemonThread = R"(
import threading
begun = threading.Event()
def wait():
    begun.set()
    threading.Event().wait()
threading.Thread(target=wait, daemon=True).start()
begun.wait()
print('ready', flush=True)
input()
)";

// The children exit with their parent.
constexpr const char* kMaster = R"(
import os
read, write = os.pipe()
for _ in range(2):
    if os.fork() == 0:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
print('ready', flush=True)
input()
)";

// Starts another Python, which is ready, and ends with its parent.
constexpr const char* kExecutes = R"(
import subprocess, sys
code = 'print("ready", flush=True); input()'
child = subprocess.Popen([sys.executable, '-c', code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
print('ready', flush=True)
input()
)";

const auto kByTrampoline = HasSubstr(": trampoline on, stopped");
const auto kByBpf =
    HasSubstr("; recording with --engine bpf instead (--engine trampoline insists)\n");
const rlimit kFewDescriptors{.rlim_cur = 5, .rlim_max = 5};

class EngineDefault : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
    python_ = plain_interpreter(12);
    if (!python_) {
      GTEST_SKIP() << "no CPython 3.12 (scripts/pythons)";
    }
    std::filesystem::create_directories(directory_ / "config/perf-pyinject");
  }
  [[nodiscard]] const Interpreter& python() const { return *python_; }
  // The user's file.
  void configure(const std::string& text) const {
    (void)directory_.file("config/perf-pyinject/config", text);
  }
  [[nodiscard]] std::string config() const { return directory_ / "config/perf-pyinject/config"; }
  [[nodiscard]] RunResult record(base::Pid pid, const std::vector<std::string>& options,
                                 std::map<std::string, std::string> environment = {}) const {
    RunOptions how;
    how.child.env = std::move(environment);
    how.child.env.emplace(kEngineVariable, "");  // as if it were not set
    how.child.env.emplace("XDG_CONFIG_HOME", directory_ / "config");
    std::vector<std::string> command{tool(),      "record", "-e",
                                     "cpu-clock", "-o",     directory_ / "data"};
    command.insert(command.end(), options.begin(), options.end());
    command.insert(command.end(), {"-p", std::to_string(pid.value()), "--", "true"});
    return run(command, how);
  }

 private:
  TempDir directory_;
  std::optional<Interpreter> python_;
};

TEST_F(EngineDefault, IsThatOfTheFirstSource) {
  const PythonProcess target{python(), kOneThread};
  configure("engine = bpf\n");
  const auto by_file = record(target.pid(), {});
  EXPECT_EQ(by_file.status, ExitStatus{}) << by_file.err;
  EXPECT_THAT(by_file.err, Not(kByTrampoline));
  const auto by_variable = record(target.pid(), {}, {{"PYINJECT_ENGINE", "trampoline"}});
  EXPECT_THAT(by_variable.err, kByTrampoline);
}

TEST_F(EngineDefault, IsAnErrorIfItIsWrong) {
  const PythonProcess target{python(), kOneThread};
  const ExitStatus failure{.code = record::kFailure};
  configure("\nengine = ebpf\n");
  const auto wrong = record(target.pid(), {});
  EXPECT_EQ(wrong.status, failure);
  EXPECT_THAT(wrong.err, HasSubstr("error: " + config() + ":2: engine = ebpf: expected "));
  EXPECT_THAT(record(target.pid(), {}, {{"PYINJECT_ENGINE", "ebpf"}}).err,
              HasSubstr("error: PYINJECT_ENGINE=ebpf: expected trampoline, bpf or auto"));
  configure("engine = bpf");
  const auto unfit = record(target.pid(), {"-o", "-"});
  EXPECT_EQ(unfit.status, failure);
  EXPECT_THAT(unfit.err, HasSubstr("error: engine = bpf (" + config() + ":1) needs perf's output"));
}

TEST_F(EngineDefault, IsQuietAboutAPipeIfItIsAuto) {
  const PythonProcess target{python(), kOneThread};
  configure("engine = auto");
  const auto recorded = record(target.pid(), {"-o", "-"});
  EXPECT_EQ(recorded.status, ExitStatus{}) << recorded.err;
  EXPECT_THAT(recorded.out, StartsWith("PERFILE2"));
  EXPECT_THAT(recorded.err, AllOf(kByTrampoline, Not(HasSubstr("engine"))));
}

TEST_F(EngineDefault, IsTheTrampolineIfThatIsSafeAndComplete) {
  const PythonProcess target{python(), kOneThread};
  const auto recorded = record(target.pid(), {});
  EXPECT_EQ(recorded.status, ExitStatus{}) << recorded.err;
  EXPECT_THAT(recorded.err, AllOf(kByTrampoline, Not(kByBpf)));
}

TEST_F(EngineDefault, IsBpfWhereTheTrampolineIsRisky) {
  const PythonProcess target{python(), kDaemonThread};
  const auto recorded = record(target.pid(), {});
  EXPECT_EQ(recorded.status, ExitStatus{}) << recorded.err;
  EXPECT_THAT(recorded.err, AllOf(HasSubstr("has 2 Python threads: "), kByBpf, Not(kByTrampoline)));
  EXPECT_THAT(record(target.pid(), {"--engine", "trampoline"}).err,
              AllOf(kByTrampoline, Not(kByBpf)));
}

TEST_F(EngineDefault, IsBpfWhereTheTrampolineWouldBeRefused) {
  const PythonProcess target{python(), kOneThread};
  ASSERT_EQ(::prlimit(target.pid().value(), RLIMIT_NOFILE, &kFewDescriptors, nullptr), 0);
  const auto recorded = record(target.pid(), {});
  EXPECT_EQ(recorded.status, ExitStatus{}) << recorded.err;
  EXPECT_THAT(recorded.err, AllOf(HasSubstr("(resource_limit)"), kByBpf));
  const auto refused = record(target.pid(), {"--engine", "trampoline"});
  EXPECT_EQ(refused.status, ExitStatus{.code = record::kFailure});
  EXPECT_THAT(refused.err, HasSubstr("(resource_limit)"));
}

TEST_F(EngineDefault, IsBpfForLines) {
  const PythonProcess target{python(), kOneThread};
  EXPECT_THAT(record(target.pid(), {"--lines"}).err, AllOf(HasSubstr("--lines: "), kByBpf));
}

TEST_F(EngineDefault, IsBpfForAMaster) {
  const PythonProcess target{python(), kMaster};
  EXPECT_THAT(record(target.pid(), {}).err,
              AllOf(HasSubstr("has forked 2 running processes: "), kByBpf));
}

TEST_F(EngineDefault, IsBpfForAFamilyThatExecutesPython) {
  const PythonProcess target{python(), kExecutes};
  EXPECT_THAT(record(target.pid(), {"--children"}).err,
              AllOf(HasSubstr(" starts Python processes by exec: "), kByBpf));
  EXPECT_THAT(record(target.pid(), {}).err, AllOf(kByTrampoline, Not(kByBpf)));
}

}  // namespace
}  // namespace pyinject::test
