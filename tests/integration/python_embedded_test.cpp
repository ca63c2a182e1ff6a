// Python inside a program that is not named python.
#include "base/file.hpp"
#include "integration/detection.hpp"
#include "support/bpf_engine.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <sstream>

namespace pyinject::test {
namespace {

namespace fs = std::filesystem;
using base::Deadline;
using python::Reason;

class PythonEmbeddedTest : public DetectionTest {
 protected:
  void SetUp() override {
    // Ask the interpreter for its library and for the prefix of its modules.
    const auto asked = run([] {
      auto command = GetParam().command;
      command.insert(command.end(),
                     {"-c",
                      "import sys, sysconfig\n"
                      "print(sysconfig.get_config_var('LIBDIR'),\n"
                      "      sysconfig.get_config_var('INSTSONAME'), sys.base_prefix)\n"});
      return command;
    }());
    std::istringstream words{asked.out};
    std::string directory;
    std::string name;
    words >> directory >> name >> prefix_;
    // An interpreter of a root that runs outside of it still reports directories inside the root.
    const auto file = interpreter_file(GetParam());
    std::string outer;
    if (GetParam().root.empty() && !is_library(file) && prefix_.ends_with("/usr")) {
      outer = prefix_.substr(0, prefix_.size() - 4);
    }
    library_ = outer + directory + "/" + name;
    if (name.find(".so") == std::string::npos) {
      GTEST_SKIP() << "built without a shared library: " << name;
    }
    if (!fs::exists(GetParam().root + library_)) {
      GTEST_SKIP() << "there is no " << GetParam().root << library_;
    }
    fs::copy_file(targets_dir() + "/embed", directory_.here("service"));
  }

  void start(const std::string& mode, const std::string& program = kIdle) {
    auto command = with_variable(with_executable(GetParam(), directory_.seen("service")),
                                 "PYTHONHOME=" + prefix_)
                       .command;
    command.insert(command.end(), {library_, mode, program});
    child_.emplace(command);
  }
  [[nodiscard]] std::string read_line() {
    return child_->read_line(Deadline::after(kPatience)).value_or("nothing; " + child_->err());
  }

  const SeenDirectory directory_{GetParam()};
  std::string prefix_;
  std::string library_;
  std::optional<ChildProcess> child_;
  Attach attach_;
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PythonEmbeddedTest);
INSTANTIATE_TEST_SUITE_P(Pythons, PythonEmbeddedTest,
                         testing::ValuesIn(interpreters({.both_ways = true})), InterpreterName{});

TEST_P(PythonEmbeddedTest, IsFoundByWhatIsMapped) {
  start("main");
  ASSERT_EQ(read_line(), "ready");
  const auto target = attach_.detect(child_->pid());
  EXPECT_EQ(target.version.minor, GetParam().minor);
  EXPECT_THAT(target.interpreter, testing::HasSubstr("libpython"));
  EXPECT_EQ(target.state, python::TrampolineState::kOff);
}

TEST_P(PythonEmbeddedTest, IsFoundAndActivatedInASecondThread) {
  start("thread");
  ASSERT_EQ(read_line(), "ready");
  EXPECT_EQ(attach_.detect(child_->pid()).version.minor, GetParam().minor);
  const auto activation = attach_.activate(child_->pid());
  EXPECT_TRUE(activation.map.valid());
  EXPECT_EQ(attach_.detect(child_->pid()).state, python::TrampolineState::kOnByUs);
  attach_.deactivate(child_->pid());
  EXPECT_EQ(attach_.detect(child_->pid()).state, python::TrampolineState::kOff);
  child_->close_stdin();
  EXPECT_EQ(child_->wait(Deadline::after(kPatience)), ExitStatus{});
  fs::remove(map_file(child_->pid()));
}

// The trampoline would wait for that thread.
TEST_P(PythonEmbeddedTest, IsRecordedByBpfIfItsMainThreadRunsNoPython) {
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
    GTEST_SKIP() << lacks;
  }
  start("around", R"(
import threading
def work():
    while True: pass
threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
)");
  ASSERT_EQ(read_line(), "ready");
  const TempDir directory;
  RunOptions options;
  options.child.env = {{kEngineVariable, ""}};
  const auto recorded = run({tool(), "record", "-e", "cpu-clock", "-o", directory / "data", "-p",
                             std::to_string(child_->pid().value()), "--", "sleep", "0.2"},
                            options);
  EXPECT_EQ(recorded.status, ExitStatus{}) << recorded.err;
  EXPECT_THAT(recorded.err, testing::AllOf(testing::HasSubstr("runs no Python function"),
                                           testing::HasSubstr("--engine bpf instead")));
  const auto script = run({"perf", "script", "-i", directory / "data", "-F", "ip,sym"});
  EXPECT_THAT(script.out, testing::HasSubstr("py::work:"));
}

TEST_P(PythonEmbeddedTest, IsNotReadyBeforeItIsInitialized) {
  start("later");
  ASSERT_EQ(read_line(), "loaded");
  expect_refused_untouched(child_->pid(), Reason::kNotInitialized, {"not initialized"});
  child_->write("go on\n");
  ASSERT_EQ(read_line(), "ready");
  expect_ready(child_->pid());
}

}  // namespace
}  // namespace pyinject::test
