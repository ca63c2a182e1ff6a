// Files of real perfs, rewritten: every perf that reads the original reads the copy with the same
// result.
#include "base/text.hpp"
#include "perfdata/output.hpp"
#include "support/child_process.hpp"
#include "support/find_perf.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <regex>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>

namespace pyinject::perfdata {
namespace {

using test::ExitStatus;
using test::RunResult;
using testing::HasSubstr;
namespace fs = std::filesystem;

using Arguments = std::vector<std::string>;

// Two processes that work for $0 rounds without system calls, and then exit.
constexpr const char* kWork =
    "work() { i=0; while [ $i -lt $0 ]; do i=$((i+1)); done; }; work & work; wait";
constexpr int kShort = 60000;
constexpr std::uint64_t kCaller = 0x7654321;
constexpr std::uint64_t kInKernel = std::uint64_t{1} << 63U;
// A mapping with a build-id, and one in the table of build-ids.
constexpr const char* kMapped = "/made/mapped";
constexpr const char* kListed = "/made/listed";
const std::vector<std::byte> build_id(20, std::byte{0xa5});

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t number = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
    ++number;
  }
  return number;
}

// Compare samples individually, since perf sorts equal times arbitrarily.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (const auto line : base::split(text, '\n')) {
    lines.emplace_back(line);
  }
  std::ranges::sort(lines);
  return lines;
}

// The warnings about lost records. perf also prints the number of all records, which is one higher.
std::string warnings(const std::string& text) {
  return std::regex_replace(text, std::regex{"Processed [0-9]+ events"}, "");
}

class PerfDataRewrite : public testing::TestWithParam<std::string> {
 protected:
  // In the new file, samples of events with user stacks have a chain of two: their address and
  // kCaller.
  struct Rewritten {
    std::string path;
    std::uint64_t samples = 0;
    std::uint64_t stacks = 0;
    std::uint64_t events_with_stacks = 0;
  };

  [[nodiscard]] std::string record(const Arguments& options,
                                   const Arguments& how_often = {"-F", "1999"},
                                   int rounds = kShort) {
    std::string path = directory_ / "perf.data";
    Arguments command{perf_, "record", "-q", "-o", path};
    command.insert(command.end(), how_often.begin(), how_often.end());
    command.insert(command.end(), options.begin(), options.end());
    command.insert(command.end(), {"--", "/bin/sh", "-c", kWork, std::to_string(rounds)});
    const RunResult result = test::run(command);
    EXPECT_EQ(result.status, ExitStatus{}) << result.err;
    return path;
  }

  [[nodiscard]] static Rewritten rewrite(const std::string& path) {
    auto opened = Input::open(path);
    const auto* const why = std::get_if<UnsupportedFile>(&opened);
    EXPECT_EQ(why, nullptr) << why->why;
    auto input = std::get<Input>(std::move(opened));
    Rewritten rewritten{.path = path + ".new"};
    const base::UniqueFd file{
        ::open(rewritten.path.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600)};
    Output output{file.get(), input};
    output.write_mapping({.pid = 1'000'000'000,
                          .tid = 1'000'000'000,
                          .start = 0x10000,
                          .size = 0x1000,
                          .build_id = build_id,
                          .protection = PROT_READ | PROT_EXEC,
                          .file = kMapped});
    Sample sample;
    std::uint64_t ending = 0;
    while (const auto record = input.next()) {
      if (record->type != PERF_RECORD_SAMPLE) {
        output.write(*record);
        continue;
      }
      ++rewritten.samples;
      EXPECT_TRUE(input.parse(*record, sample));
      const bool stack = sample.event->has_user_stacks();
      rewritten.stacks += stack ? 1 : 0;
      const bool whole = sample.register_abi == PERF_SAMPLE_REGS_ABI_64 &&
                         sample.stack_asked != 0 && !sample.stack.empty();
      // In the kernel, an exiting thread has no memory any more.
      EXPECT_TRUE(!stack || whole || sample.ip >= kInKernel) << std::hex << sample.ip;
      ending += stack && !whole ? 1 : 0;
      const std::vector<std::uint64_t> chain{PERF_CONTEXT_USER, sample.ip, kCaller};
      EXPECT_TRUE(output.write_sample(sample, stack ? chain : sample.chain));
    }
    EXPECT_EQ(input.damage(), "");
    EXPECT_LE(10 * ending, rewritten.stacks);
    rewritten.events_with_stacks =
        static_cast<std::uint64_t>(std::ranges::count_if(input.events(), &Event::has_user_stacks));
    output.finish(std::array{BuildId{.id = build_id, .file = kListed}});
    EXPECT_EQ(fs::file_size(rewritten.path), output.size());
    return rewritten;
  }

  // Every perf that can read BEFORE must print the same for AFTER.
  static void expect_same(const std::string& before, const std::string& after,
                          const std::string& fields) {
    int readers = 0;
    for (const char* const name : {"perf", "perf6.12", "perf7"}) {
      const auto reader = test::find_perf(name);
      if (!reader) {
        continue;
      }
      const auto script = [&](const std::string& path) {
        return test::run({*reader, "script", "--no-inline", "-F", fields, "-i", path});
      };
      const RunResult old = script(before);
      if (old.status != ExitStatus{} || old.out.empty()) {
        continue;
      }
      ++readers;
      const RunResult now = script(after);
      EXPECT_EQ(now.status, ExitStatus{}) << name << now.err;
      EXPECT_EQ(warnings(now.err), warnings(old.err)) << name;
      EXPECT_TRUE(lines_of(now.out) == lines_of(old.out)) << name << ": " << before << "\n"
                                                          << old.out.substr(0, 500) << "\nafter\n"
                                                          << now.out.substr(0, 500);
    }
    EXPECT_GT(readers, 0) << before;
  }

  [[nodiscard]] RunResult perf(Arguments arguments) const {
    arguments.insert(arguments.begin(), perf_);
    return test::run(arguments);
  }
  [[nodiscard]] const test::TempDir& directory() const { return directory_; }

  // A file with user stacks has lost them and nothing else.
  void expect_new_stacks(const std::string& before, const Rewritten& rewritten) {
    EXPECT_GT(rewritten.stacks, 50U);
    expect_same(before, rewritten.path, "comm,tid,time,period,event");
    const RunResult listing = perf({"script", "--no-inline", "-F", "ip", "-i", rewritten.path});
    EXPECT_EQ(count(listing.out, fmt::format(" {:x}\n", kCaller)), rewritten.stacks) << listing.err;
    std::string id;
    for (std::size_t i = 0; i < build_id.size(); ++i) {
      id += "a5";
    }
    EXPECT_THAT(perf({"buildid-list", "-i", rewritten.path}).out,
                HasSubstr(id + " " + kListed + "\n"));
    EXPECT_THAT(perf({"script", "--no-inline", "--show-mmap-events", "-i", rewritten.path}).out,
                HasSubstr(fmt::format("[0x10000(0x1000) @ 0 <{}>]: r-xp {}\n", id, kMapped)));
    const RunResult events = perf({"evlist", "-v", "-i", before});
    EXPECT_EQ(count(events.out, "STACK_USER"), rewritten.events_with_stacks);
    for (const auto* const command : {"evlist -v", "report --header-only"}) {
      Arguments arguments{"-i", rewritten.path};
      const auto words = base::split(command, ' ');
      arguments.insert(arguments.begin(), words.begin(), words.end());
      const RunResult result = perf(arguments);
      EXPECT_EQ(result.status, ExitStatus{}) << result.err;
      EXPECT_GT(count(result.out, "sample_type"), 0U) << command;
      for (const auto* const gone : {"STACK_USER", "REGS_USER", "sample_stack_user",
                                     "sample_regs_user", "exclude_callchain_user"}) {
        EXPECT_EQ(count(result.out, gone), 0U) << command << " " << gone;
      }
    }
  }

 private:
  void SetUp() override {
    const auto found = test::find_perf(GetParam());
    if (!found) {
      GTEST_SKIP() << "no " << GetParam() << " (scripts/pythons)";
    }
    perf_ = *found;
  }

  std::string perf_;
  test::TempDir directory_;
};

TEST_P(PerfDataRewrite, KeepsARecordingWithoutUserStacks) {
  const auto path = record({"-e", "{cpu-clock,task-clock}:S", "-g", "-s", "-I"});
  const auto rewritten = rewrite(path);
  EXPECT_GT(rewritten.samples, 50U);
  EXPECT_EQ(rewritten.stacks, 0U);
  expect_same(path, rewritten.path, "comm,tid,time,period,event,ip");
  const auto report = [&](const std::string& file) {
    // One line for each chain: as a tree, perf 7.2 draws chains of equal weight in the order of its
    // own memory, and the last one differently. With inlined functions, it sometimes waits for
    // addr2line forever.
    auto lines =
        lines_of(perf({"report", "--stdio", "--no-inline", "-g", "folded,0", "-i", file}).out);
    // The header names the file.
    std::erase_if(lines, [](const std::string& line) { return line.starts_with('#'); });
    return lines;
  };
  const auto before = report(path);
  EXPECT_GT(before.size(), 10U);
  EXPECT_EQ(report(rewritten.path), before);
}

TEST_P(PerfDataRewrite, ReplacesCompressedUserStacks) {
  const auto path = record({"-e", "cpu-clock", "-z", "--call-graph", "dwarf,4096"});
  const auto rewritten = rewrite(path);
  EXPECT_EQ(rewritten.samples, rewritten.stacks);
  expect_new_stacks(path, rewritten);
  EXPECT_EQ(count(perf({"report", "--header-only", "-i", rewritten.path}).out, "compressed"), 0U);
}

TEST_P(PerfDataRewrite, AcceptsEventsThatSampleDifferentThings) {
  const auto path = record({"-e", "cpu-clock/call-graph=dwarf/", "-e", "task-clock/call-graph=fp/",
                            "-d", "-W", "--phys-data", "--transaction"});
  const auto rewritten = rewrite(path);
  EXPECT_GT(rewritten.samples, rewritten.stacks);
  expect_new_stacks(path, rewritten);
}

INSTANTIATE_TEST_SUITE_P(Perfs, PerfDataRewrite, testing::Values("perf", "perf6.12", "perf7"),
                         [](const auto& one) {
                           std::string text = one.param;
                           std::ranges::replace(text, '.', '_');
                           return text;
                         });

// Cases for which one perf suffices.
class PerfDataModes : public PerfDataRewrite {
 protected:
  [[nodiscard]] static std::string why_not(const std::string& path) {
    const auto input = Input::open(path);
    const auto* const why = std::get_if<UnsupportedFile>(&input);
    return why == nullptr ? "" : why->why;
  }
};

TEST_P(PerfDataModes, PerThreadRecordingsKeepTheirSamples) {
  const auto path = record({"-e", "cpu-clock", "--per-thread", "-g"});
  const auto rewritten = rewrite(path);
  EXPECT_GT(rewritten.samples, 20U);
  expect_same(path, rewritten.path, "comm,tid,period,event,ip");
}

TEST_P(PerfDataModes, SeriesOfFilesKeepTheirSamples) {
  const auto path =
      record({"-e", "cpu-clock", "-m", "4", "--switch-output=16K", "--call-graph", "dwarf,1024"},
             {"-F", "1999"}, 10 * kShort);
  std::vector<std::string> files;
  for (const auto& file : fs::directory_iterator{directory().path()}) {
    files.push_back(file.path());
  }
  std::ranges::sort(files);
  int with_samples = 0;
  for (const auto& file : files) {
    // One may be full of mappings before any process is sampled.
    if (with_samples < 3 && rewrite(file).stacks > 0) {
      expect_same(file, file + ".new", "comm,tid,time,period,event");
      ++with_samples;
    }
  }
  EXPECT_EQ(with_samples, 3) << path;
}

TEST_P(PerfDataModes, TracepointsKeepTheirSamples) {
  const RunResult list = perf({"list", "--raw-dump", "tracepoint"});
  if (count(list.out, "sched:sched_process_fork") == 0) {
    GTEST_SKIP() << "no tracepoints";
  }
  const auto path = record({"-e", "sched:sched_process_fork", "-e", "sched:sched_process_exit",
                            "-R", "--call-graph", "dwarf,512"},
                           {"-c", "1"});
  const auto rewritten = rewrite(path);
  EXPECT_GE(rewritten.samples, 3U);
  expect_same(path, rewritten.path, "comm,tid,time,period,event,trace");
}

TEST_P(PerfDataModes, ADirectoryBecomesOneFile) {
  for (const auto* const option : {"-v", "-z"}) {
    const auto path = record({"-e", "cpu-clock", "-g", "--threads", option});
    const auto rewritten = rewrite(path);
    EXPECT_GE(rewritten.samples, 10U);
    expect_same(path, rewritten.path, "comm,tid,time,period,event,ip");
    EXPECT_THAT(why_not(path + "/data"), HasSubstr("--threads"));
    std::filesystem::remove_all(path);
  }
}

TEST_P(PerfDataModes, PipesAreNotForUs) {
  const RunResult piped = perf({"record", "-q", "-e", "cpu-clock", "-o", "-", "--", "true"});
  EXPECT_THAT(why_not(directory().file("piped", piped.out)), HasSubstr("pipe"));
}

INSTANTIATE_TEST_SUITE_P(Perfs, PerfDataModes, testing::Values("perf"));

}  // namespace
}  // namespace pyinject::perfdata
