// How early a program that the tool launches has Python stacks with the BPF engine.
#include "e2e/bpf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "support/temp_dir.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace pyinject::test {
namespace {

// CPython imports `encodings` before it is initialized and before any other module that is not
// frozen.
constexpr auto kEarly = R"(
import sys, time
def early():
    end = time.process_time() + 1
    while time.process_time() < end:
        for _ in range(1000):
            pass
early()
sys.path.pop(0)
del sys.modules['encodings']
import encodings
)";

// Works for half as long, then runs the rest of its arguments.
constexpr auto kLate = R"(
import subprocess, sys, time
def late():
    end = time.process_time() + 0.5
    while time.process_time() < end:
        for _ in range(1000):
            pass
late()
if sys.argv[1:]:
    subprocess.check_call(sys.argv[1:])
)";

struct Worked {
  std::size_t all = 0;
  std::size_t early = 0;
  std::size_t late = 0;
};

class BpfLaunch : public testing::TestWithParam<Build> {};

TEST_P(BpfLaunch, HasPythonStacksFromItsFirstFunction) {
  const auto lacks = bpf_engine_lacks();
  const auto python = find_build(GetParam());
  if (!lacks.empty() || !python) {
    GTEST_SKIP() << lacks << " or no " << name(GetParam()) << " (scripts/pythons)";
  }
  const TempDir directory;
  std::filesystem::create_directory(directory.path() / "encodings");
  (void)directory.file("encodings/__init__.py", kEarly);
  auto program = python->command;
  program.push_back(directory.file("program.py", kLate));
  const std::string data = directory / "data";
  std::vector<std::string> arguments{"record", "--engine",  "bpf", "-F", "999",
                                     "-e",     "cpu-clock", "-o",  data, "--"};
  arguments.insert(arguments.end(), program.begin(), program.end());
  for (const auto* const word : {"sh", "-c", "env \"$@\"; exit $?", "sh"}) {
    arguments.emplace_back(word);
  }
  arguments.insert(arguments.end(), program.begin(), program.end());
  ChildOptions options;
  options.env["PYTHONPATH"] = directory.path();
  const auto result = run_tool(arguments, options);
  ASSERT_EQ(result.status, ExitStatus{}) << result.err;
  std::map<std::string, Worked> processes;
  for (const auto& sample : samples_without_kernel_names(data)) {
    const auto chain = sample.chain();
    auto& worked = processes[sample.pid];
    ++worked.all;
    worked.early += std::ranges::count(chain, "early") > 0 ? 1 : 0;
    worked.late += std::ranges::count(chain, "late") > 0 ? 1 : 0;
  }
  std::erase_if(processes, [](const auto& one) { return one.second.late == 0; });
  EXPECT_EQ(processes.size(), 2U) << result.err;
  for (const auto& [pid, worked] : processes) {
    EXPECT_GE(worked.late, 100U) << result.err;
    // The tool may have to wait for a processor in the meantime.
    EXPECT_GE(10 * worked.early, 6 * 2 * worked.late) << result.err;
    EXPECT_GE(10 * (worked.early + worked.late), 6 * worked.all) << result.err;
    RecordProperty("shares", std::to_string(worked.early) + " " + std::to_string(worked.late) +
                                 " of " + std::to_string(worked.all));
  }
}

INSTANTIATE_TEST_SUITE_P(Pythons, BpfLaunch, testing::ValuesIn(builds_without_jit()), BuildName{});

}  // namespace
}  // namespace pyinject::test
