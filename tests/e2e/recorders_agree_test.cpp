// The tool's own recorder and perf, by the same options, find the same in the same work: by events
// that time causes, they record it at once; events that the work causes are the same each time.
#include "base/text.hpp"
#include "e2e/bpf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "support/bpf_engine.hpp"
#include "support/covering.hpp"
#include "support/find_perf.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/python_process.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::test {
namespace {

// Each line on stdin: the same work of each kind.
constexpr const char* kEachKindOfWork = R"(
import mmap, os, sys, time
null = os.open('/dev/null', os.O_WRONLY)

def compute(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        sum(i * i for i in range(1000))

def touch(pages):
    with mmap.mmap(-1, pages * 4096) as memory:
        for page in range(pages):
            memory[page * 4096] = 1

def write(times):
    for _ in range(times):
        os.write(null, b'x')

def wait(times):
    for _ in range(times):
        time.sleep(0.0002)

print('ready', flush=True)
for line in sys.stdin:
    touch(3000)
    write(3000)
    wait(300)
    compute(1)
    print('done', flush=True)
)";

enum class CountedBy {
  kProcessTime,
  kLuck,  // how often a processor's timer meets it, or meets the kernel
  kDoneWork,
};

struct OptionSet {
  std::string perf;
  std::string name;
  std::vector<std::string> options;
  CountedBy counts = CountedBy::kProcessTime;
};
void PrintTo(const OptionSet& one, std::ostream* stream) { *stream << one.perf << ' ' << one.name; }

std::vector<OptionSet> option_sets() {
  const std::vector<OptionSet> all{
      {{}, "default", {"-F", "999"}},
      {{}, "clock", {"-e", "cpu-clock", "-F", "997"}},
      {{}, "task_clock", {"-e", "task-clock", "-F", "499"}},
      {{}, "period", {"-e", "cpu-clock", "-c", "1000000"}},
      {{}, "period_of_event", {"-e", "cpu-clock/period=2000000/"}},
      {{}, "user", {"-e", "cpu-clock:u", "-F", "999"}},
      {{}, "kernel", {"-e", "cpu-clock:k", "-F", "4999"}, CountedBy::kLuck},
      {{}, "faults", {"-e", "page-faults", "-c", "1"}, CountedBy::kDoneWork},
      {{}, "some_faults", {"-e", "minor-faults", "-c", "10"}, CountedBy::kDoneWork},
      {{},
       "two_events",
       {"-e", "page-faults/period=10/,minor-faults/period=3/"},
       CountedBy::kDoneWork},
      {{}, "tracepoint", {"-e", "syscalls:sys_enter_write", "-c", "1"}, CountedBy::kDoneWork},
      {{},
       "two_tracepoints",
       {"-e", "syscalls:sys_enter_write,syscalls:sys_exit_write"},
       CountedBy::kDoneWork},
      {{}, "switch_events", {"-e", "cpu-clock", "-F", "999", "--switch-events"}},
      {{}, "copied_stacks", {"-e", "cpu-clock", "-F", "499", "--call-graph", "dwarf,16384"}},
      {{},
       "user_chains",
       {"-e", "page-faults", "-c", "10", "-g", "--user-callchains"},
       CountedBy::kDoneWork},
      {{}, "no_inherit", {"-e", "cpu-clock", "-F", "999", "-i"}},
      {{}, "no_build_ids", {"-e", "cpu-clock", "-F", "999", "-B"}},
      {{}, "large_rings", {"-e", "cpu-clock", "-F", "3999", "-m", "2M"}},
      {{}, "compressed", {"-e", "cpu-clock", "-F", "999", "-z"}},
      {{}, "all_processors", {"-e", "cpu-clock", "-F", "999", "-a"}, CountedBy::kLuck},
  };
  std::vector<OptionSet> rows;
  for (const auto* const perf : {"perf", "perf6.12", "perf7"}) {
    for (auto one : all) {
      one.perf = perf;
      rows.push_back(std::move(one));
    }
  }
  return rows;
}

// Samples of a process by event: all, and those with compute() in their stack.
struct SamplesOfEvent {
  long all = 0;
  long computing = 0;
};

std::map<std::string, SamplesOfEvent> counts_of(const std::string& perf, const std::string& data,
                                                const std::string& pid) {
  const auto script = run(
      {perf, "script", "-i", data, "-F", "pid,event,ip,sym", "--kallsyms", few_kernel_symbols()});
  EXPECT_EQ(script.status, ExitStatus{}) << script.err;
  std::map<std::string, SamplesOfEvent> counts;
  SamplesOfEvent* current = nullptr;
  bool counted = false;
  for (const auto line : base::split(script.out, '\n')) {
    const auto words = base::trim(line);
    if (words.empty()) {
      current = nullptr;
    } else if (line.ends_with(": ") || line.ends_with(':')) {
      const auto blank = words.find(' ');
      counted = false;
      current = words.substr(0, blank) == pid
                    ? &counts[std::string{base::trim(words.substr(std::min(blank, words.size())))}]
                    : nullptr;
      if (current != nullptr) {
        ++current->all;
      }
    } else if (current != nullptr && !counted &&
               words.find("py::compute:") != std::string_view::npos) {
      counted = true;
      ++current->computing;
    }
  }
  return counts;
}

class RecordersAgree : public testing::TestWithParam<OptionSet> {
 protected:
  void SetUp() override {
    perf_ = find_perf(GetParam().perf);
    python_ = plain_interpreter(13);
    if (!perf_ || !python_) {
      GTEST_SKIP() << "no " << GetParam().perf << ", or no CPython 3.13 (scripts/pythons)";
    }
    if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
    if (GetParam().name.find("tracepoint") != std::string::npos && !has_tracepoints()) {
      GTEST_SKIP() << "no tracefs";
    }
  }
  [[nodiscard]] std::string path_of(const std::string& name) const { return directory_ / name; }
  [[nodiscard]] std::vector<std::string> arguments(const std::string& recorder,
                                                   const std::string& pid) const {
    std::vector<std::string> words{"--engine",   "bpf",    "--recorder",
                                   recorder,     "--perf", *perf_,
                                   "--keep-raw", "-o",     path_of(recorder)};
    const auto& options = GetParam().options;
    words.insert(words.end(), options.begin(), options.end());
    if (std::ranges::find(options, "-a") == options.end()) {
      words.insert(words.end(), {"-p", pid});
    }
    return words;
  }
  static void expect_close(long own, long by_perf, const std::string& what) {
    // Whatever takes a processor away for a moment holds up each timer by itself. By chance, 500
    // samples vary by 22: 5.3 times as much is less than once in 10 million runs.
    const auto counts = GetParam().counts;
    const long most = counts == CountedBy::kDoneWork      ? std::max(by_perf / 100, 2L)
                      : counts == CountedBy::kProcessTime ? std::max(by_perf / 20, 10L)
                                                          : std::max(by_perf / 4, 170L);
    EXPECT_LE(std::abs(own - by_perf), most) << what << ": " << own << ", perf: " << by_perf;
  }
  [[nodiscard]] const std::string& perf() const { return *perf_; }
  [[nodiscard]] const Interpreter& python() const { return *python_; }

 private:
  TempDir directory_;
  std::optional<std::string> perf_;
  std::optional<Interpreter> python_;
};

TEST_P(RecordersAgree, AndEveryCommandOfPerfReadsWhatTheOwnOneWrites) {
  PythonProcess target{python(), kEachKindOfWork};
  const auto pid = std::to_string(target.pid().value());
  const auto work = [&] {
    target.send_line("go");
    EXPECT_EQ(target.read_line(), "done");
  };
  work();  // memory that is only touched once
  RunningRecord by_perf{arguments("perf", pid)};
  if (GetParam().counts == CountedBy::kDoneWork) {
    work();
    EXPECT_EQ(by_perf.finish(), ExitStatus{}) << by_perf.child().err();
  }
  RunningRecord own{arguments("own", pid)};
  work();
  EXPECT_EQ(own.finish(), ExitStatus{}) << own.child().err();
  if (GetParam().counts != CountedBy::kDoneWork) {
    EXPECT_EQ(by_perf.finish(), ExitStatus{}) << by_perf.child().err();
  }
  const auto expected = counts_of(perf(), path_of("perf"), pid);
  const auto found = counts_of(perf(), path_of("own"), pid);
  EXPECT_FALSE(expected.empty()) << by_perf.child().err();
  ASSERT_EQ(found.size(), expected.size()) << own.child().err();
  for (auto [one, other] = std::pair{found.begin(), expected.begin()}; one != found.end();
       ++one, ++other) {
    if (GetParam().name != "default") {  // perf 7 falls back to task-clock without counters
      EXPECT_EQ(one->first, other->first);
    }
    expect_close(one->second.all, other->second.all, one->first);
    expect_close(one->second.computing, other->second.computing, one->first + ", compute()");
  }
  for (const auto& file : {path_of("own"), path_of("own") + ".raw"}) {
    for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
             {"report", "--stdio", "-g", "none", "--kallsyms", few_kernel_symbols()},
             {"annotate", "--stdio", "compute"},
             {"evlist"},
             {"buildid-list"},
             {"inject", "-b", "-o", path_of("injected")}}) {
      auto words = command;
      words.insert(words.begin(), perf());
      words.insert(words.end(), {"-i", file});
      const auto result = run(words);
      EXPECT_EQ(result.status, ExitStatus{}) << command[0] << ": " << result.err;
    }
    const auto compared = run({perf(), "diff", path_of("perf"), file});
    EXPECT_EQ(compared.status, ExitStatus{}) << compared.err;
  }
}
INSTANTIATE_TEST_SUITE_P(Options, RecordersAgree, testing::ValuesIn(option_sets()),
                         [](const testing::TestParamInfo<OptionSet>& each) {
                           auto name = each.param.perf + "_" + each.param.name;
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace pyinject::test
