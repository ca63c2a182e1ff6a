// The trampoline makes CPython write the perf map; a profile of system calls has only the target's
// own.
#include "e2e/bpf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "support/interpreters.hpp"
#include "support/python_process.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace pyinject::test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr auto kWrite = "syscalls:sys_enter_write";
constexpr auto kOpen = "syscalls:sys_enter_openat";
constexpr int kFunctions = 200;
constexpr int kWrites = 40;
constexpr int kOpens = 20;
constexpr int kEntries = 10;

// Enters new functions, and makes a known number of system calls. With an argument, it also writes
// names to the map by itself.
const std::string writing_program = fmt::format(R"(
import os, sys
out = os.pipe()[1]
entry = None
if len(sys.argv) > 1:
    import ctypes
    entry = ctypes.pythonapi.PyUnstable_WritePerfMapEntry
    entry.argtypes = [ctypes.c_void_p, ctypes.c_uint, ctypes.c_char_p]
functions = {{}}
os.write(1, b'ready\n')
sys.stdin.readline()
for i in range({}):
    exec(f'def f{{i}}(): return {{i}}', functions)
    functions[f'f{{i}}']()
    if i < {}:
        os.write(out, b'x')
    if i < {}:
        os.close(os.open('/', os.O_RDONLY))
    if entry and i < {}:
        entry(16, 1, b'mine')
os.write(1, b'done\n')
sys.stdin.readline()
)",
                                                kFunctions, kWrites, kOpens, kEntries);

class MapWrites : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_tracepoints()) {
      GTEST_SKIP() << "no tracefs is mounted";
    }
  }
  void record(const Interpreter& python, const std::vector<std::string>& arguments,
              const std::vector<std::string>& call_graph = {}) {
    PythonOptions options;
    options.args = arguments;
    PythonProcess target{python, writing_program, options};
    std::vector<std::string> options_of_record{
        "--engine", "trampoline", "-o", data(), "-p", std::to_string(target.pid().value()),
        "-e",       kWrite,       "-e", kOpen,  "-m", "16M"};
    options_of_record.insert(options_of_record.end(), call_graph.begin(), call_graph.end());
    RunningRecord running{options_of_record};
    target.send_line("");
    EXPECT_EQ(target.read_line(), "done");
    EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
    messages_ = running.child().err();
    EXPECT_THAT(messages_, Not(HasSubstr("perf lost")));
  }
  [[nodiscard]] long count(std::string_view event) const {
    const auto samples = scripted_samples(data());
    return std::ranges::count_if(
        samples, [event](const auto& sample) { return sample.event.starts_with(event); });
  }
  [[nodiscard]] std::string data() const { return directory_ / "data"; }

  TempDir directory_;
  std::string messages_;
};

class MapWritesOfEach : public MapWrites, public testing::WithParamInterface<Interpreter> {};

TEST_P(MapWritesOfEach, AreNotInAProfileOfSystemCalls) {
  record(GetParam(), {});
  EXPECT_EQ(count(kWrite), kWrites + 1) << messages_;
  EXPECT_EQ(count(kOpen), kOpens) << messages_;
  EXPECT_THAT(messages_, HasSubstr(" samples of the tool's own perf map writes skipped"));
}

TEST_P(MapWritesOfEach, AreNotThereWithCopiedStacks) {
  record(GetParam(), {}, {"--call-graph", "dwarf,16384"});
  EXPECT_EQ(count(kWrite), kWrites + 1) << messages_;
  EXPECT_EQ(count(kOpen), kOpens) << messages_;
  EXPECT_THAT(messages_, HasSubstr(" samples of the tool's own perf map writes skipped"));
}

INSTANTIATE_TEST_SUITE_P(Pythons, MapWritesOfEach,
                         testing::ValuesIn(interpreters({.trampoline = true})), InterpreterName{});

// The C library has no frame pointers.
TEST_F(MapWrites, MayStayWithFramePointers) {
  const auto python = plain_interpreter(15);
  if (!python) {
    GTEST_SKIP() << "no CPython 3.15 (scripts/pythons)";
  }
  record(*python, {}, {"--call-graph", "fp"});
  EXPECT_GE(count(kWrite), kWrites + 1) << messages_;
  EXPECT_EQ(count(kOpen), kOpens) << messages_;
  EXPECT_THAT(messages_, HasSubstr("perf map writes may remain"));
}

TEST_F(MapWrites, LeaveThoseOfTheProgramItself) {
  const auto python = find_interpreter(
      {.root = false, .free_threaded = false, .trampoline = true, .module = "ctypes"});
  if (!python) {
    GTEST_SKIP() << "no Python with ctypes";
  }
  record(*python, {"names"});
  EXPECT_EQ(count(kWrite), kWrites + kEntries + 1) << messages_;
}

}  // namespace
}  // namespace pyinject::test
