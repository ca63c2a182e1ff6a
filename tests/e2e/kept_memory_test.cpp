// record --what memory: the lines whose memory is not given back, not those that use more of it for
// a moment.
#include "e2e/bpf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "perf/tracefs.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/python_process.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

namespace pyinject::test {
namespace {

using nlohmann::json;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class KeptMemory : public testing::TestWithParam<Interpreter> {
 protected:
  void SetUp() override {
    if (const auto lack = bpf_engine_lacks(); !lack.empty()) {
      GTEST_SKIP() << lack;
    }
    if (!has_tracepoints()) {
      GTEST_SKIP() << "no tracefs is mounted";
    }
  }
  [[nodiscard]] std::string report(const std::vector<std::string>& options) const {
    std::vector<std::string> arguments{"report", data_};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const auto shown = run_tool(arguments);
    EXPECT_EQ(shown.status, ExitStatus{}) << shown.err;
    return shown.out;
  }
  // Records PYTHON while it runs ROUNDS. Returns what it says that it keeps, and the messages.
  [[nodiscard]] json record(PythonProcess& python, const std::string& rounds,
                            std::string& messages) {
    const auto before = std::chrono::steady_clock::now();
    RunningRecord running{
        {"-p", std::to_string(python.pid().value()), "--what", "memory", "--lines", "-o", data_}};
    python.send_line(rounds);
    auto wanted = json::parse(python.read_line(kPatience));
    // All of it is older than a tenth of the recording.
    std::this_thread::sleep_for((std::chrono::steady_clock::now() - before) / 4);
    EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
    messages = running.child().err();
    return wanted;
  }
  TempDir directory_;
  const std::string data_ = directory_ / "perf.data";
};
INSTANTIATE_TEST_SUITE_P(Pythons, KeptMemory, testing::ValuesIn(interpreters({})),
                         InterpreterName{});

TEST_P(KeptMemory, IsThatOfTheLinesThatLeak) {
  PythonProcess python{GetParam(), target_source("leaks.py")};
  std::string messages;
  const auto wanted = record(python, "12", messages);
  EXPECT_THAT(messages, ContainsRegex("[0-9.]+ MB of [0-9.]+ GB that system calls have mapped are "
                                      "still mapped"));
  const auto shown = json::parse(report({"--view", "lines", "--json"}));
  ASSERT_EQ(shown.at("tables").size(), 1U) << shown;
  const auto table = shown.at("tables").at(0);
  EXPECT_EQ(table.at("event"), "memory");
  EXPECT_EQ(table.at("unit"), "bytes");
  EXPECT_EQ(table.at("rows").at(0).at("name"), "leak_big") << table;
  EXPECT_GT(table.at("rows").at(0).at("line"), 0);
  std::map<std::string, double> found;
  double all = 0;
  for (const auto& row : table.at("rows")) {
    found[row.at("name").get<std::string>()] += row.at("self").get<double>();
    all += row.at("self").get<double>();
  }
  for (const auto& [name, bytes] : wanted.items()) {
    // Arenas and the heap grow by more than what is asked for, and had some memory free.
    EXPECT_GT(found[name], 0.8 * bytes.get<double>()) << name << " " << table;
    EXPECT_LT(found[name], 1.4 * bytes.get<double>()) << name << " " << table;
    const auto other = "use_" + name.substr(name.find('_') + 1);
    EXPECT_LT(found[other], 0.15 * found[name]) << other << " " << table;
  }
  EXPECT_GT(found["leak_big"] + found["leak_small"] + found["leak_medium"], 0.9 * all) << table;
  const auto text = report({"--limit", "1"});
  EXPECT_THAT(text, StartsWith("memory: "));
  EXPECT_THAT(text, HasSubstr(" MB mapped and not given back ("));
}

// Of an allocator that is a library of this machine.
class ToldBlocks : public KeptMemory {};
INSTANTIATE_TEST_SUITE_P(Pythons, ToldBlocks,
                         testing::ValuesIn(interpreters(
                             {.root = false, .module = "ctypes", .each_version = Prefer::kLoader})),
                         InterpreterName{});

TEST_P(ToldBlocks, HaveTheirWeightUntilTheyAreFreed) {
  PythonOptions options;
  options.args = {targets_dir() + "/sampled_heap.so"};
  PythonProcess python{GetParam(), target_source("sampled_heap.py"), options};
  std::string messages;
  const auto wanted = record(python, "200", messages);
  EXPECT_THAT(messages, HasSubstr("sampled_heap.so tells a sample of its blocks"));
  EXPECT_THAT(messages, HasSubstr("104.9 MB of 314.6 MB that the allocator has told are "
                                  "not freed"));
  const auto shown = json::parse(report({"--view", "lines", "--json"}));
  const auto& tables = shown.at("tables");
  const auto heap =
      std::ranges::find_if(tables, [](const json& table) { return table.at("event") == "heap"; });
  ASSERT_NE(heap, tables.end()) << shown;
  EXPECT_EQ(heap->at("unit"), "bytes");
  const auto& row = heap->at("rows").at(0);
  EXPECT_EQ(row.at("name"), "keep_block");
  EXPECT_EQ(row.at("self"), wanted.at("keep_block")) << *heap;
  EXPECT_GT(row.at("line"), 0);
  EXPECT_THAT(heap->dump(), Not(HasSubstr("use_block")));
  EXPECT_THAT(report({}), HasSubstr("heap: 104.9 MB allocated and not freed (an estimate"));
}

TEST_P(ToldBlocks, AreLeftOutWithAWarningIfProbesCannotBePlaced) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "mounting needs root";
  }
  const auto tracefs = perf::find_tracefs();
  ASSERT_TRUE(tracefs);
  PythonOptions options;
  options.args = {targets_dir() + "/sampled_heap.so"};
  PythonProcess python{GetParam(), target_source("sampled_heap.py"), options};
  const auto result =
      run({"unshare", "--mount", "sh", "-c",
           "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\" && exec \"$@\"", *tracefs,
           tool(), "record", "-p", std::to_string(python.pid().value()), "--what", "memory", "-o",
           data_, "--", "true"});
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  EXPECT_THAT(result.err, HasSubstr("sampled_heap.so samples is left out: "));
}

}  // namespace
}  // namespace pyinject::test
