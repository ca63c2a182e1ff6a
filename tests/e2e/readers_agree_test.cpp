// Whichever way a recorded program is started, perf script and export show the same samples with
// the same Python functions.
#include "base/text.hpp"
#include "e2e/bpf_recording.hpp"
#include "e2e/perf_attributes.hpp"
#include "e2e/served_tree.hpp"
#include "support/bpf_engine.hpp"
#include "support/find_perf.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/python_process.hpp"
#include "support/statistics.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

struct Start {
  std::string_view way;
  std::string_view engine;
  int minor = 0;
  std::string perf = "perf";
  std::string_view option{};
};
std::string name(const Start& start) {
  return fmt::format("{}_{}_py3_{}", start.way, start.engine, start.minor);
}
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const Start& start, std::ostream* stream) { *stream << name(start); }

// The first two are commands of `record`; the third one is started by a shell that is recorded; the
// others are told to starts.py.
constexpr std::array<std::string_view, 8> kWays{"launched",   "shell", "late",       "fork",
                                                "subprocess", "spawn", "forkserver", "exec"};

// Each way by both engines, each with two versions in rotation.
std::vector<Start> starts() {
  std::vector<Start> all;
  for (std::size_t i = 0; i < kWays.size(); ++i) {
    for (const int more : {0, 2}) {
      const auto minor = [&](std::size_t shift) {
        return 12 + static_cast<int>((i + shift + static_cast<std::size_t>(more)) % 4);
      };
      all.push_back({.way = kWays.at(i), .engine = "bpf", .minor = minor(0)});
      all.push_back({.way = kWays.at(i), .engine = "trampoline", .minor = minor(1)});
    }
  }
  return all;
}

// Samples by pid, tid, and Python functions with their files, outermost first. Without the frame
// [gc]: in recordings by the trampoline, only export has it.
using Counts = std::map<std::string, std::size_t>;

std::string key(const std::string& pid, const std::string& tid,
                const std::vector<std::string>& functions) {
  return fmt::format("{} {} {}", pid, tid, fmt::join(functions, " > "));
}

Counts counts_of_perf(const std::string& data, const std::string& perf,
                      const ChildOptions& options = {}) {
  Counts counts;
  for (const auto& sample : scripted_samples(data, {}, perf, options)) {
    std::vector<std::string> functions;
    for (const auto& frame : sample.frames) {
      if (frame.python() && frame.function() != "[gc]") {
        functions.push_back(frame.function() + " " + frame.file());
      }
    }
    std::ranges::reverse(functions);
    ++counts[key(sample.pid, sample.tid, functions)];
  }
  return counts;
}

Counts counts_of_export(const std::string& data, const ChildOptions& options = {}) {
  const auto result = run_tool({"export", "-f", "jsonl", data, "-o", "-"}, options);
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  Counts counts;
  for (const auto line : base::split(base::trim(result.out), '\n')) {
    const auto sample = nlohmann::json::parse(line);
    std::vector<std::string> functions;
    for (const auto& frame : sample.at("stack")) {
      if (frame.at("kind") == "python" && frame.at("function") != "[gc]") {
        functions.push_back(frame.at("function").get<std::string>() + " " +
                            frame.at("file").get<std::string>());
      }
    }
    std::ranges::reverse(functions);
    ++counts[key(std::to_string(sample.at("pid").get<int>()),
                 std::to_string(sample.at("tid").get<int>()), functions)];
  }
  return counts;
}

// "KEY: ONE, OTHER" for each key whose counts differ.
std::vector<std::string> differences(const Counts& one, const Counts& other) {
  std::vector<std::string> all;
  auto keys = one;
  keys.insert(other.begin(), other.end());
  const auto count = [](const Counts& counts, const std::string& key) {
    const auto found = counts.find(key);
    return found == counts.end() ? 0 : found->second;
  };
  for (const auto& [each, unused] : keys) {
    if (count(one, each) != count(other, each)) {
      all.push_back(fmt::format("{}: {}, {}", each, count(one, each), count(other, each)));
    }
  }
  return all;
}

// Makes FILE like one of a version that put no names into the file: the last place in the table at
// its end is theirs (perfdata/file_header.hpp, OwnSection).
void forget_names(const std::string& file) {
  constexpr std::streamoff kFromEnd = 24 + 16;
  constexpr int kNames = 255;
  std::fstream stream{file, std::ios::in | std::ios::out | std::ios::binary};
  stream.seekg(-kFromEnd, std::ios::end);
  EXPECT_EQ(stream.get(), kNames);
  stream.seekp(-kFromEnd, std::ios::end);
  stream.put(0);
}

std::size_t working(const Counts& counts) {
  std::size_t sum = 0;
  for (const auto& [key, count] : counts) {
    sum += key.find("outer <string> > middle <string> > leaf <string>") != std::string::npos ? count
                                                                                             : 0;
  }
  return sum;
}

std::size_t number_of(const Counts& counts) {
  std::size_t sum = 0;
  for (const auto& [key, count] : counts) {
    sum += count;
  }
  return sum;
}

// The samples that `record` has counted by their stacks, in FILE of --stats.
std::size_t counted_by_kind(const std::string& file) {
  std::size_t sum = 0;
  const auto stats = nlohmann::json::parse(contents_of(file));
  for (const auto& [kind, count] : stats.at("stacks").items()) {
    sum += count.get<std::size_t>();
  }
  return sum;
}

// Records what GIVEN's program starts and does in that way; returns the tool's messages.
std::string record(const Start& given, const Interpreter& python, const std::string& data) {
  std::vector<std::string> arguments{"--engine", std::string{given.engine},
                                     "-F",       "499",
                                     "-e",       "cpu-clock",
                                     "-o",       data,
                                     "--perf",   given.perf,
                                     "--stats",  data + ".stats"};
  for (const auto word : base::split(given.option, ' ')) {
    if (!word.empty()) {
      arguments.emplace_back(word);
    }
  }
  auto program = python.command;
  program.insert(program.end(), {"-c", target_source("starts.py")});
  if (given.way == "launched" || given.way == "shell") {
    arguments.insert(arguments.begin(), {tool(), "record"});
    arguments.emplace_back("--");
    if (given.way == "shell") {
      arguments.insert(arguments.end(), {"sh", "-c", "\"$@\"; exit $?", "sh"});
    }
    arguments.insert(arguments.end(), program.begin(), program.end());
    const auto result = run(arguments, {.child = {}, .input = "fork\n", .deadline = kPatience});
    EXPECT_EQ(result.status, ExitStatus{}) << result.err;
    return result.err;
  }
  std::vector<std::string> shell{"sh", "-c", "echo ready; read word; \"$@\"", "sh"};
  const bool late = given.way == "late";
  ChildProcess target{late ? [&] {
    shell.insert(shell.end(), program.begin(), program.end());
    return shell;
  }()
                           : program};
  const auto line = [&] { return target.read_line(base::Deadline::after(kPatience)).value_or(""); };
  EXPECT_EQ(line(), "ready") << target.err();
  arguments.insert(arguments.end(), {"-p", std::to_string(target.pid().value()), "--children"});
  RunningRecord running{arguments};
  if (late) {
    target.write("go\n");
    EXPECT_EQ(line(), "ready") << target.err();
  }
  target.write(late ? "fork\n" : fmt::format("{}\n", given.way));
  EXPECT_EQ(line(), "done") << target.err();
  EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  target.close_stdin();
  EXPECT_TRUE(target.wait(base::Deadline::after(kPatience))) << "it removes its temporary files";
  return running.child().err();
}

class Readers : public testing::TestWithParam<Start> {};

TEST_P(Readers, ShowTheSameSamplesAsPerf) {
  const auto given = GetParam();
  const auto pythons =
      interpreters({.minor = given.minor, .trampoline = true, .each_version = Prefer::kChrooted});
  const auto lacks = given.engine == "bpf" ? bpf_engine_lacks() : "";
  if (!lacks.empty() || pythons.empty()) {
    GTEST_SKIP() << (pythons.empty() ? "no such CPython (scripts/pythons)" : lacks);
  }
  const TempDir directory;
  const auto data = directory / "data";
  const auto messages = record(given, pythons.front(), data);
  const auto ours = counts_of_export(data);
  EXPECT_GE(working(ours), 100U) << messages;
  EXPECT_EQ(counted_by_kind(data + ".stats"), number_of(ours)) << messages;
  const auto perfs = perfs_that_read(given.perf);
  for (const auto& perf : perfs) {
    EXPECT_THAT(differences(ours, counts_of_perf(data, perf)), IsEmpty()) << perf << "\n"
                                                                          << messages;
  }
  // Another user or machine has not the build-id cache of who has recorded.
  ChildOptions elsewhere;
  elsewhere.env["PERF_CONFIG"] =
      directory.file("config", fmt::format("[buildid]\n\tdir = {}\n", directory / "no-names"));
  EXPECT_THAT(differences(ours, counts_of_export(data, elsewhere)), IsEmpty());
  const auto old = directory / "old";
  fs::copy(data, old);
  forget_names(old);
  const auto report = run_tool({"report", old}, elsewhere);
  EXPECT_THAT(report.err, HasSubstr("Python functions whose names are not on this machine"));
  const auto none = run_tool({"weave", "--names", old}, elsewhere);
  EXPECT_NE(none.status, ExitStatus{});
  EXPECT_THAT(none.err, HasSubstr("no names are in it"));

  const auto given_to_perf = run_tool({"weave", "--names", data}, elsewhere);
  EXPECT_EQ(given_to_perf.status, ExitStatus{}) << given_to_perf.err;
  for (const auto& perf : perfs) {
    EXPECT_THAT(differences(ours, counts_of_perf(data, perf, elsewhere)), IsEmpty()) << perf;
  }
}

// All options of perf record that can be in a file with stacks, on a machine without counters and
// AUX data: docs/limits.md has the others.
constexpr std::array kOptions{
    "-B",
    "-C 0,1",
    "-I",
    "-N",
    "-P",
    "-R",
    "-T",
    "-W",
    "-g",
    "-i",
    "-m 64",
    "-s",
    "-v",
    "-z",
    "--affinity=node",
    "--aio",
    "--all-cgroups",
    "--all-user",
    "--buildid-all",
    "--buildid-mmap",
    "--call-graph=fp",
    "--call-graph=dwarf,65528",
    "--code-page-size",
    "--data",
    "--data-page-size",
    "--max-size=100M",
    "--mmap-flush=1k",
    "--namespaces",
    "--no-bpf-event",
    "--no-buffering",
    "--num-thread-synthesize=1",
    "--per-thread",
    "--phys-data",
    "--proc-map-timeout=500",
    "--running-time",
    "--sample-cpu",
    "--sample-identifier",
    "--strict-freq",
    "--switch-events",
    "--synth=all",
    "--synth=mmap",
    "--tail-synthesize",
    "--threads",
    "--threads=core -z",
    "--timestamp-boundary",
    "--transaction",
    "--user-callchains",
    "--user-regs=ip",
    "-e {task-clock,cpu-clock}:S",
    "-e {task-clock,context-switches}:S",
    "-e cpu-clock:u",
};

class OptionsOfPerf : public testing::TestWithParam<Start> {
 protected:
  void SetUp() override {
    const auto pythons = interpreters(
        {.minor = given_.minor, .trampoline = true, .each_version = Prefer::kChrooted});
    const auto lacks = given_.engine == "bpf" ? bpf_engine_lacks() : "";
    const auto perf = find_perf(given_.perf);
    if (!lacks.empty() || pythons.empty() || !perf) {
      GTEST_SKIP() << (!perf             ? "no such perf (scripts/pythons)"
                       : pythons.empty() ? "no such CPython (scripts/pythons)"
                                         : lacks);
    }
    given_.perf = *perf;
    python_ = pythons.front();
  }
  [[nodiscard]] const Start& given() const { return given_; }
  [[nodiscard]] const Interpreter& python() const { return *python_; }

 private:
  Start given_ = GetParam();  // with the path of its perf
  std::optional<Interpreter> python_;
};

TEST_P(OptionsOfPerf, LeavePerfsSamplesAndAllStacks) {
  const TempDir directory;
  const auto data = directory / "data";
  const auto messages = record(given(), python(), data);
  const auto ours = counts_of_export(data);
  EXPECT_THAT(differences(ours, counts_of_perf(data, given().perf)), IsEmpty()) << messages;
  if (messages.find("only the innermost function of a sample is known") != std::string::npos) {
    return;  // frame pointers were asked for, and there are none
  }
  const auto all = number_of(ours);
  // 0.4 s of processor time: 200 samples. The others are of the start and the end of the work.
  EXPECT_GE(working(ours), 50U) << messages;
  EXPECT_TRUE(share_is_at_least({.count = working(ours), .all = all}, 0.8)) << messages;
}

TEST_P(OptionsOfPerf, KeepPerfsAttributes) {
  const TempDir directory;
  const auto ours = directory / "ours";
  const auto messages = record(given(), python(), ours);
  const auto perfs = directory / "perfs";
  const ChildProcess waiting{{"cat"}};
  std::vector<std::string> alone{given().perf, "record",    "-F", "499",
                                 "-e",         "cpu-clock", "-o", perfs};
  for (const auto word : base::split(given().option, ' ')) {
    alone.emplace_back(word);
  }
  alone.insert(alone.end(), {"-p", std::to_string(waiting.pid().value()), "--", "true"});
  const auto result = run(alone);
  ASSERT_EQ(result.status, ExitStatus{}) << result.err;
  const bool copies = messages.find("--call-graph dwarf,") != std::string::npos;
  EXPECT_THAT(attribute_differences(perfs, ours, copies), IsEmpty()) << messages;
}

// By both engines, each version and perf in rotation.
std::vector<Start> options() {
  std::vector<Start> all;
  for (std::size_t i = 0; i < kOptions.size(); ++i) {
    for (const auto* const engine : {"bpf", "trampoline"}) {
      const auto number = i + (all.size() % 2) * 2;
      all.push_back({.way = "itself",
                     .engine = engine,
                     .minor = 12 + static_cast<int>(number % 4),
                     .perf = (i + all.size()) % 2 == 0 ? "perf" : "perf7",
                     .option = kOptions.at(i)});
    }
  }
  return all;
}

struct OptionName {
  template <typename Info>
  std::string operator()(const Info& info) const {
    std::string option;
    for (const char letter : info.param.option) {
      option += std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter : '_';
    }
    return fmt::format("{}_{}_{}_py3_{}", option, info.param.perf, info.param.engine,
                       info.param.minor);
  }
};
INSTANTIATE_TEST_SUITE_P(Record, OptionsOfPerf, testing::ValuesIn(options()), OptionName{});

struct StartName {
  template <typename Info>
  std::string operator()(const Info& info) const {
    return name(info.param);
  }
};
INSTANTIATE_TEST_SUITE_P(Ways, Readers, testing::ValuesIn(starts()), StartName{});

}  // namespace
}  // namespace pyinject::test
