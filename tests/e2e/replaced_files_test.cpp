// A library that was replaced on the disk while a process had it mapped, as by an upgrade: the
// names of its functions come from the mapped file, also when the process is gone.
#include "e2e/both_engines.hpp"
#include "e2e/bpf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "support/cpu_time.hpp"
#include "support/find_perf.hpp"
#include "support/paths.hpp"
#include "support/python_process.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <unistd.h>

namespace pyinject::test {
namespace {

using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

constexpr auto kCallsThroughLibrary = R"(
import ctypes, sys
library = ctypes.PyDLL(sys.argv[1])
library.call_through.restype = ctypes.py_object
library.call_through.argtypes = [ctypes.py_object] * 2
def work():
    for _ in range(100000):
        pass
print('ready', flush=True)
while True:
    library.call_through(None, work)
)";

std::vector<Recorded> plain_ones() {
  std::vector<Recorded> all;
  for (const int minor : {12, 13, 14, 15}) {
    if (const auto python = plain_interpreter(minor)) {
      all.push_back({.python = *python, .engine = "trampoline"});
      all.push_back({.python = *python, .engine = "bpf"});
    }
  }
  return all;
}

class ReplacedFiles : public testing::TestWithParam<Recorded> {};

TEST_P(ReplacedFiles, HaveTheirNames) {
  const auto lacks = GetParam().engine == "bpf" ? bpf_engine_lacks() : "";
  if (!lacks.empty() || ::geteuid() != 0) {
    GTEST_SKIP() << (lacks.empty() ? "only root reads the mapped file" : lacks);
  }
  const TempDir directory;
  const auto library = directory / "library.so";
  const auto data = directory / "perf.data";
  fs::copy(targets_dir() + "/calls_python.so", library);
  std::string recorded;
  {
    const PythonProcess target{GetParam().python,
                               kCallsThroughLibrary,
                               {.interpreter_args = {}, .args = {library}, .child = {}}};
    fs::copy(targets_dir() + "/callbacks.so", directory / "new.so");
    fs::rename(directory / "new.so", library);
    RunningRecord running{{"--engine", GetParam().engine, "-F", "499", "-e", "cpu-clock", "-p",
                           std::to_string(target.pid().value()), "-o", data}};
    wait_for_cpu_time(target.pid(), std::chrono::milliseconds{300});
    ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
    recorded = running.child().err();
  }
  for (const auto& perf : perfs_that_read("perf")) {
    std::size_t working = 0;
    std::size_t named = 0;
    for (const auto& sample : samples_without_kernel_names(data, perf)) {
      const auto chain = sample.chain();
      const bool works = !chain.empty() && chain.back() == "work";
      working += works ? 1 : 0;
      named += works && std::ranges::any_of(
                            sample.frames,
                            [](const auto& frame) { return frame.symbol == "call_through"; })
                   ? 1
                   : 0;
    }
    EXPECT_GE(working, 60U) << perf << "\n" << recorded;
    EXPECT_GE(named, working - working / 20) << perf << "\n" << recorded;
  }
  const auto report = run_tool({"report", "--by", "native", data});
  EXPECT_THAT(report.out, HasSubstr("call_through")) << recorded;
  EXPECT_THAT(report.err, Not(HasSubstr("C functions without names")));

  // Another user has not the cache of who has recorded.
  ChildOptions elsewhere;
  elsewhere.env["PERF_CONFIG"] =
      directory.file("config", fmt::format("[buildid]\n\tdir = {}\n", directory / "no-names"));
  const auto nameless = run_tool({"report", "--by", "native", data}, elsewhere);
  EXPECT_THAT(nameless.out, Not(HasSubstr("call_through")));
  EXPECT_THAT(nameless.err,
              HasSubstr("have C functions without names, of files that were replaced"));
}

INSTANTIATE_TEST_SUITE_P(Pythons, ReplacedFiles, testing::ValuesIn(plain_ones()), recorded_name);

}  // namespace
}  // namespace pyinject::test
