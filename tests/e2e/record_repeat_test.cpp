// record --repeat: consecutive recordings, as a service makes them.
#include "base/file.hpp"
#include "e2e/served_tree.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/record/plan.hpp"
#include "support/find_perf.hpp"
#include "support/patience.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <regex>
#include <utility>

namespace pyinject::test {
namespace {

using base::Deadline;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr const char* kRuns = "the events are enabled";
constexpr const char* kDone = "next: perf report -i ";
constexpr const char* kPauses = "the next recording begins in";

// Its messages arrive on standard output, line by line.
class Repeated {
 public:
  explicit Repeated(const std::vector<std::string>& arguments)
      : child_{command(arguments),
               {.env = kGivesBack, .unset = {}, .uid = {}, .directory = {}, .root = {}}} {}

  // The next line that contains TEXT; throws base::Error if there is none.
  std::string expect(const std::string& text) {
    const auto deadline = Deadline::after(seconds{60});
    while (const auto line = child_.read_line(deadline)) {
      log_ += *line + "\n";
      if (line->find(text) != std::string::npos) {
        return *line;
      }
    }
    throw base::Error{"no '" + text + "' in: " + log_};
  }
  void signal(int number) const { child_.signal(number); }
  ExitStatus wait() {
    while (const auto line = child_.read_line(Deadline::after(seconds{60}))) {
      log_ += *line + "\n";
    }
    return child_.wait(Deadline::after(kPatience)).value_or(ExitStatus{.code = -1});
  }
  [[nodiscard]] base::Pid pid() const { return child_.pid(); }
  [[nodiscard]] const std::string& log() const { return log_; }

 private:
  // Makes glibc return freed memory to the kernel; by default it sometimes keeps more.
  static inline const std::map<std::string, std::string> kGivesBack{
      {"MALLOC_ARENA_MAX", "1"},
      {"MALLOC_MMAP_THRESHOLD_", "65536"},
      {"MALLOC_TRIM_THRESHOLD_", "65536"}};

  static std::vector<std::string> command(const std::vector<std::string>& arguments) {
    std::vector<std::string> words{"sh", "-c", "exec \"$@\" 2>&1", "sh", tool(), "record", "-v"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return words;
  }

  ChildProcess child_;
  std::string log_;
};

class Repeat : public testing::Test {
 protected:
  void SetUp() override {
    if (!plain_interpreter(15)) {
      GTEST_SKIP() << "no CPython 3.15 (scripts/pythons)";
    }
    target_.emplace(*plain_interpreter(15));
  }
  [[nodiscard]] ServedTree& target() { return *target_; }
  [[nodiscard]] const TempDir& directory() const { return directory_; }
  [[nodiscard]] std::vector<std::string> arguments(const std::vector<std::string>& more) const {
    // Without it, perf's thread for BPF programs takes up to a second to end.
    std::vector<std::string> words{"-p", target_->pid(),          "-F", "999", "--no-bpf-event",
                                   "-o", directory_ / "perf.data"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  // Without the directories of names.
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator{directory_.path()}) {
      if (entry.is_regular_file()) {
        paths.push_back(entry.path());
      }
    }
    std::ranges::sort(paths);
    return paths;
  }
  void expect_off_and_well() {
    EXPECT_EQ(trampoline_of(target_->pid()), "off");
    target_->serve(10);
    EXPECT_EQ(target_->finish(), ExitStatus{});
  }

 private:
  TempDir directory_;
  std::optional<ServedTree> target_;
};

void expect_named(const std::string& path) {
  const auto named = count_named(read_samples("perf", path));
  EXPECT_GT(named.samples, 10U) << path;
  EXPECT_GE(named.innermost, kInLeaves) << path;
  const auto report = run({"perf", "report", "--stdio", "-i", path});
  EXPECT_EQ(report.status, ExitStatus{});
  EXPECT_THAT(report.out, HasSubstr("py::"));
}

TEST_F(Repeat, RecordsAgainAndKeepsTheLatestFiles) {
  Repeated record{arguments({"--repeat", "2s/2010ms", "--keep", "2"})};
  std::vector<std::string> written;
  for (int i = 0; i < 3; ++i) {
    const auto line = record.expect(kDone);
    const auto name = line.substr(line.find(kDone) + std::string_view{kDone}.size());
    written.push_back(name.substr(0, name.find(',')));
    record.expect(kPauses);
  }
  record.expect(kRuns);
  record.signal(SIGTERM);
  EXPECT_EQ(record.wait(), (ExitStatus{.code = 128 + SIGTERM})) << record.log();
  const auto left = files();
  ASSERT_EQ(left.size(), 2U);
  EXPECT_EQ(left.front(), written.back()) << "the last complete one";
  for (const auto& path : left) {
    EXPECT_TRUE(std::regex_search(path, std::regex{R"(perf\.data\.20\d{14}$)"})) << path;
  }
  // The later file may have ended before its first sample.
  EXPECT_TRUE(std::filesystem::exists(left.front() + ".names/python-" + target().pid()) ||
              std::filesystem::exists(left.front() + ".names/python"));
  expect_named(left.front());
  expect_off_and_well();
}

TEST_F(Repeat, SighupBeginsTheNextFileAndSigtermEndsItWhole) {
  Repeated record{arguments({"--repeat", "1h/1h"})};
  for (const int signal : {SIGHUP, SIGTERM}) {
    record.expect(kRuns);
    target().serve(5, milliseconds{400});
    record.signal(signal);
    record.expect(kDone);
  }
  EXPECT_EQ(record.wait(), (ExitStatus{.code = 128 + SIGTERM})) << record.log();
  ASSERT_EQ(files().size(), 2U);
  for (const auto& path : files()) {
    expect_named(path);
  }
  expect_off_and_well();
}

TEST_F(Repeat, FailureIsToldAndTheNextOneTried) {
  const auto fails = directory() / "fails";
  const auto perf = directory().file("perf", "#!/bin/sh\n[ -e " + fails + " ] && exit 3\nexec '" +
                                                 find_perf("perf").value() + "' \"$@\"\n");
  std::filesystem::permissions(perf, std::filesystem::perms::owner_all);
  Repeated record{arguments({"--repeat", "20ms/1h", "--perf", perf})};
  record.expect(kPauses);
  (void)directory().file("fails", "");
  record.signal(SIGHUP);
  record.expect("this recording failed (status 125)");
  record.expect(kPauses);
  EXPECT_EQ(trampoline_of(target().pid()), "off");
  std::filesystem::remove(fails);
  record.signal(SIGHUP);
  record.expect(kRuns);
  record.expect(kPauses);
  // Now no target is left.
  EXPECT_EQ(target().finish(), ExitStatus{});
  EXPECT_EQ(record.wait(), ExitStatus{}) << record.log();
  EXPECT_THAT(record.log(), HasSubstr("all targets have exited"));
}

// A budget that no recording can meet.
TEST_F(Repeat, SamplesLessOftenThanMaxCpuAllowsAndSaysSo) {
  Repeated record{arguments({"--repeat", "20ms/1h", "--max-cpu", "0.001%"})};
  const auto begin_next = [&] {
    record.expect(kPauses);
    record.signal(SIGHUP);
  };
  begin_next();
  EXPECT_THAT(record.expect("more than --max-cpu 0.001%"),
              testing::ContainsRegex("the latest recording took [0-9.e+]+ % of a CPU, .*: the next "
                                     "recordings sample at 249 Hz, not 999"));
  begin_next();
  record.expect("sample at 99 Hz, not 249");
  begin_next();
  record.expect("more than --max-cpu 0.001%, at the lowest frequency, 99 Hz: a longer PERIOD");
  const auto third = files().at(2);
  EXPECT_THAT(run({"perf", "evlist", "-F", "-i", third}).out, HasSubstr("sample_freq=99"));
  record.expect(kRuns);
  record.signal(SIGTERM);
  EXPECT_EQ(record.wait(), (ExitStatus{.code = 128 + SIGTERM})) << record.log();
  expect_off_and_well();
}

TEST_F(Repeat, StopsIfTheFirstRecordingDoesNotBegin) {
  const ChildProcess other{{"cat"}};
  const auto refused = run_tool({"record", "-p", std::to_string(other.pid().value()), "-o",
                                 directory() / "perf.data", "--repeat", "10ms/20ms"});
  EXPECT_EQ(refused.status.code, record::kFailure);
  EXPECT_THAT(files(), testing::IsEmpty());
}

// The size of the tool and of its target between two recordings.
struct Size {
  std::size_t rss_kb = 0;  // without file mappings
  std::size_t fds = 0;
  std::size_t mappings = 0;
  std::size_t target_fds = 0;
  std::size_t target_mappings = 0;
  std::size_t map_bytes = 0;
};

std::size_t count_entries(const std::string& path) {
  return static_cast<std::size_t>(std::ranges::distance(std::filesystem::directory_iterator{path},
                                                        std::filesystem::directory_iterator{}));
}

Size measure(base::Pid tool, const std::string& target) {
  const auto proc = "/proc/" + std::to_string(tool.value());
  const auto status = base::read_file(proc + "/status").value_or("");
  std::smatch rss;
  EXPECT_TRUE(std::regex_search(status, rss, std::regex{R"(RssAnon:\s+(\d+))"}));
  const auto children = base::read_file(proc + "/task/" + proc.substr(6) + "/children");
  EXPECT_EQ(children.value_or(""), "") << "neither perf nor a guard";
  const auto lines = [](const std::string& path) {
    const auto text = base::read_file(path).value_or("");
    return static_cast<std::size_t>(std::ranges::count(text, '\n'));
  };
  std::error_code none;
  const auto map = std::filesystem::file_size("/tmp/perf-" + target + ".map", none);
  return {.rss_kb = std::stoul(rss[1]),
          .fds = count_entries(proc + "/fd"),
          .mappings = lines(proc + "/maps"),
          .target_fds = count_entries("/proc/" + target + "/fd"),
          .target_mappings = lines("/proc/" + target + "/maps"),
          .map_bytes = none ? 0 : map};
}

// PYINJECT_REPEAT_CYCLES: the number of recordings of one process, thousands if desired.
TEST_F(Repeat, NothingGrows) {
  const char* const wished = std::getenv("PYINJECT_REPEAT_CYCLES");
  const int cycles = wished == nullptr ? 8 : std::atoi(wished);
  Repeated record{arguments({"--repeat", "10ms/1h", "--keep", "1"})};
  Size before;
  Size after;
  for (int i = 0; i < cycles; ++i) {
    record.expect(kPauses);
    (i == cycles / 2 ? before : after) = measure(record.pid(), target().pid());
    EXPECT_EQ(files().size(), 1U) << record.log();  // the pause lasts an hour
    record.signal(SIGHUP);
  }
  record.expect(kPauses);
  record.signal(SIGTERM);
  EXPECT_EQ(record.wait(), (ExitStatus{.code = 128 + SIGTERM})) << record.log();
  EXPECT_EQ(after.fds, before.fds);
  EXPECT_EQ(after.target_fds, before.target_fds);
  EXPECT_LE(after.rss_kb, before.rss_kb + 256);
  EXPECT_LE(after.mappings, before.mappings + 2);
  EXPECT_LE(after.target_mappings, before.target_mappings + 2);
  EXPECT_LE(after.map_bytes, before.map_bytes + 4096);
  EXPECT_EQ(files().size(), 1U);
  RecordProperty("cycles", cycles);
  RecordProperty("rss_kb", static_cast<int>(after.rss_kb));
  RecordProperty("rss_kb_half_way", static_cast<int>(before.rss_kb));
  RecordProperty("map_bytes", static_cast<int>(after.map_bytes));
  RecordProperty("target_mappings", static_cast<int>(after.target_mappings));
  expect_off_and_well();
}

}  // namespace
}  // namespace pyinject::test
