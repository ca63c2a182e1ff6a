// The BPF engine at tracepoints, system calls and uprobes: each hit of a program's known calls has
// the Python functions that made it.
#include "base/file.hpp"
#include "base/text.hpp"
#include "e2e/bpf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "pyinject/base/error.hpp"
#include "support/cpu_time.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

#include <unistd.h>

namespace pyinject::test {
namespace {

using base::Deadline;
using testing::HasSubstr;

constexpr auto kWrite = "syscalls:sys_enter_write";
constexpr auto kRead = "syscalls:sys_enter_pread64";
constexpr std::size_t kWrites = 3000;
constexpr std::size_t kReads = 2000;
constexpr std::size_t kMasks = 1000;

struct Counts {
  std::size_t all = 0;
  std::size_t right = 0;  // the chain ends in the function that makes this call
};

// Of the samples of EVENT in DATA with the callchain of FUNCTION.
Counts count_of(const std::vector<ScriptedSample>& samples, const std::string& event,
                const std::string& function) {
  const std::vector<std::string> chain{"<module>", "serve", function};
  Counts counts;
  for (const auto& sample : samples) {
    if (sample.event.starts_with(event)) {
      ++counts.all;
      counts.right += sample.chain() == chain ? 1 : 0;
    }
  }
  return counts;
}

class BpfEvents : public testing::TestWithParam<Build> {
 protected:
  void SetUp() override {
    if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
    if (!has_tracepoints()) {
      GTEST_SKIP() << "no tracefs is mounted";
    }
    python_ = find_build(GetParam());
    if (!python_) {
      GTEST_SKIP() << "no " << name(GetParam()) << " (scripts/pythons)";
    }
    PythonOptions options;
    options.child = environment_of(GetParam());
    target_.emplace(*python_, target_source("events.py"), options);
  }
  // Records with OPTIONS while the program makes its calls.
  void record(const std::vector<std::string>& options) {
    std::vector<std::string> arguments{"--engine", "bpf",   "-o", data(),
                                       "--stats",  stats(), "-p", pid()};
    arguments.insert(arguments.end(), options.begin(), options.end());
    RunningRecord running{arguments};
    work();
    EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
    messages_ = running.child().err();
  }
  void work() {
    target_->send_line(fmt::format("{} {} {}", kWrites, kReads, kMasks));
    EXPECT_EQ(target_->read_line(kPatience), "done");
  }
  [[nodiscard]] std::string pid() const { return std::to_string(target_->pid().value()); }
  [[nodiscard]] std::string data() const { return directory_ / "data"; }
  [[nodiscard]] std::string stats() const { return directory_ / "stats"; }
  [[nodiscard]] PythonProcess& target() { return *target_; }
  [[nodiscard]] const std::string& messages() const { return messages_; }

 private:
  TempDir directory_;
  std::optional<Interpreter> python_;
  std::optional<PythonProcess> target_;
  std::string messages_;
};

// perf writes one sample per call; its buffers are large enough for all of them.
TEST_P(BpfEvents, HaveTheFunctionsThatMadeSystemCalls) {
  record({"-e", kWrite, "-e", kRead, "-e", "cpu-clock", "-m", "8M"});
  const auto samples = samples_without_kernel_names(data());
  const auto written = count_of(samples, kWrite, "writes");
  const auto read = count_of(samples, kRead, "reads");
  EXPECT_GE(written.right, kWrites) << messages();
  EXPECT_LE(written.all, kWrites + 2) << "and its answer";
  EXPECT_EQ(read.right, kReads) << messages();
  EXPECT_EQ(read.all, kReads);
  EXPECT_GE(bpf_figures(stats())["traced"], kWrites + kReads);
  EXPECT_EQ(bpf_figures(stats())["unmatched"], 0) << messages();
  EXPECT_THAT(messages(), HasSubstr("have Python stacks"));
}

INSTANTIATE_TEST_SUITE_P(Pythons, BpfEvents, testing::ValuesIn(all_builds()), BuildName{});

class BpfEventsOfOne : public BpfEvents {};

// Another perf's samples of the same tracepoint are neither dropped nor changed.
TEST_P(BpfEventsOfOne, TakeNoSampleFromAnotherPerf) {
  PythonProcess other{*plain_interpreter(13), target_source("events.py")};
  const TempDir directory;
  const std::string foreign = directory / "foreign";
  ChildProcess perf{{"perf", "record", "-g", "-m", "8M", "-e", kRead, "-p",
                     std::to_string(other.pid().value()), "-o", foreign, "--", "sh", "-c",
                     "echo ready; read word"}};
  ASSERT_EQ(perf.read_line(Deadline::after(kPatience)), "ready") << perf.err();
  RunningRecord running{{"--engine", "bpf", "-o", data(), "-p", pid(), "-e", kRead}};
  other.send_line(fmt::format("0 {} 0", kReads));
  EXPECT_EQ(other.read_line(kPatience), "done");
  work();
  EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  perf.write("\n");
  EXPECT_EQ(perf.wait(Deadline::after(kPatience)), ExitStatus{}) << perf.err();
  const auto foreign_samples = samples_without_kernel_names(foreign);
  EXPECT_EQ(foreign_samples.size(), kReads);
  EXPECT_TRUE(std::ranges::none_of(
      foreign_samples, [](const auto& sample) { return sample.innermost() != nullptr; }));
  EXPECT_EQ(count_of(samples_without_kernel_names(data()), kRead, "reads").right, kReads);
}

TEST_P(BpfEventsOfOne, AreJoinedInARunningPerf) {
  const TempDir directory;
  ChildProcess perf{{"perf", "record", "-g", "-k", "mono", "-m", "8M", "-e", kRead, "-p", pid(),
                     "-o", data(), "--", "sh", "-c", "echo ready; read word"}};
  ASSERT_EQ(perf.read_line(Deadline::after(kPatience)), "ready") << perf.err();
  ChildProcess join{{tool(), "join", std::to_string(perf.pid().value())}};
  await(join, "joined perf record");
  work();
  perf.write("\n");
  EXPECT_EQ(perf.wait(Deadline::after(kPatience)), ExitStatus{}) << perf.err();
  EXPECT_EQ(join.wait(Deadline::after(kPatience)), ExitStatus{}) << join.err();
  EXPECT_EQ(count_of(samples_without_kernel_names(data()), kRead, "reads").right, kReads)
      << join.err();
}

// Their times are read before perf's: only -k mono is the program's clock.
TEST_P(BpfEventsOfOne, AreReportedIfOfAnotherClock) {
  record({"-e", kRead, "-k", "CLOCK_MONOTONIC_RAW"});
  EXPECT_THAT(messages(), HasSubstr("tracepoints and probes need -k mono"));
  EXPECT_EQ(count_of(samples_without_kernel_names(data()), kRead, "reads").right, 0U);
}

// From the call in libc through the evaluator to the first C function. (An interpreter may be
// stripped: the names of its C functions are not compared.)
TEST_P(BpfEventsOfOne, HaveTheCFunctionsOfCopiedStacks) {
  record({"-e", kRead, "--call-graph", "dwarf,16384", "-m", "32M"});
  std::size_t whole = 0;
  for (const auto& sample : samples_without_kernel_names(data())) {
    const auto& frames = sample.frames;
    const auto innermost = std::ranges::find_if(frames, &ScriptFrame::python);
    const auto inside = std::distance(frames.begin(), innermost);
    constexpr auto kLeast = 3;  // libc's pread, CPython's os.pread, the evaluator
    whole += innermost != frames.end() && innermost->function() == "reads" && inside >= kLeast &&
                     !frames.back().python()
                 ? 1
                 : 0;
  }
  EXPECT_GE(whole, kReads * 99 / 100) << messages();
}

// The program of docs/recipes.md, whose calls are in its source.
TEST_P(BpfEventsOfOne, HaveTheProportionsOfTheExample) {
  const auto source = base::read_file(source_dir() + "/examples/shop.py").value_or("");
  PythonProcess shop{*plain_interpreter(13), "print('ready', flush=True)\n" + source};
  RunningRecord running{{"--engine", "bpf", "-o", data(), "-m", "16M", "-p",
                         std::to_string(shop.pid().value()), "-e", "syscalls:sys_enter_openat",
                         "-e", "syscalls:sys_enter_connect", "-e", "syscalls:sys_enter_fsync", "-e",
                         "page-faults/period=1/"}};
  wait_for_cpu_time(shop.pid(), std::chrono::milliseconds{500});
  EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  std::map<std::string, std::map<std::string, double>> counts;  // by event and function
  for (const auto& sample : samples_without_kernel_names(data())) {
    for (const auto& frame : sample.frames) {
      counts[sample.event][frame.python() ? frame.function() : ""] += 1;
    }
  }
  const auto share = [&counts](const std::string& event, const std::string& function) {
    return counts[event][function] / counts[event]["serve"];
  };
  const double rounds = counts["syscalls:sys_enter_fsync:"]["save_order"];
  EXPECT_GT(rounds, 20);
  EXPECT_NEAR(counts["syscalls:sys_enter_openat:"]["load_prices"], 3 * rounds, 3);
  EXPECT_NEAR(counts["syscalls:sys_enter_connect:"]["ask_stock"], 2 * rounds, 2);
  EXPECT_GT(share("page-faults/period=1/:", "resize_image"), 0.98);
}

// A uprobe of perf probe, in the process's own libc.
class Uprobe {
 public:
  explicit Uprobe(const PythonProcess& target) {
    const auto library = fmt::format("/proc/{}/root{}", target.pid().value(), libc_of(target));
    const auto added = run({"perf", "probe", "-q", "-f", "-x", library, "--add", name_ + "=umask"});
    EXPECT_EQ(added.status, ExitStatus{}) << added.err;
  }
  ~Uprobe() { EXPECT_EQ(run({"perf", "probe", "-q", "--del", event()}).status, ExitStatus{}); }
  Uprobe(const Uprobe&) = delete;
  Uprobe& operator=(const Uprobe&) = delete;
  [[nodiscard]] std::string event() const { return "probe_libc:" + name_; }

 private:
  static std::string libc_of(const PythonProcess& target) {
    const auto maps = base::read_file(fmt::format("/proc/{}/maps", target.pid().value()));
    for (const auto line : base::split(maps.value_or(""), '\n')) {
      if (line.ends_with("/libc.so.6")) {
        return std::string{line.substr(line.find('/'))};
      }
    }
    throw base::Error{"the target has no libc"};
  }
  std::string name_ = fmt::format("pyinject_test_{}", ::getpid());
};

TEST_P(BpfEventsOfOne, HaveTheFunctionsThatCalledAUprobe) {
  if (::access("/sys/kernel/tracing/uprobe_events", W_OK) != 0) {
    GTEST_SKIP() << "uprobes cannot be made here";
  }
  const Uprobe probe{target()};
  record({"-e", probe.event(), "-e", kRead, "-m", "8M"});
  const auto samples = samples_without_kernel_names(data());
  EXPECT_EQ(count_of(samples, probe.event(), "masks").right, kMasks) << messages();
  EXPECT_EQ(count_of(samples, kRead, "reads").right, kReads) << messages();
}

INSTANTIATE_TEST_SUITE_P(Pythons, BpfEventsOfOne, testing::Values(Build{.minor = 13}), BuildName{});

}  // namespace
}  // namespace pyinject::test
