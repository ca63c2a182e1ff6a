// Files of real perfs, post-processed: nothing of their contents is lost, and the stacks are
// complete.
#include "weave/weave.hpp"

#include "base/text.hpp"
#include "perfdata/input.hpp"
#include "support/child_process.hpp"
#include "support/temp_dir.hpp"
#include "weave/recorded_files.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <sys/mman.h>

namespace pyinject::weave {
namespace {

using test::ExitStatus;
using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

using Arguments = std::vector<std::string>;

// Two forked processes that work without system calls and then exit.
constexpr const char* kTwoWorkers =
    "work() { i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; }; work & work; wait";

perfdata::Input opened(const std::string& path) {
  return std::get<perfdata::Input>(perfdata::Input::open(path));
}

std::size_t bytes_of_samples(const std::string& path) {
  auto input = opened(path);
  std::size_t bytes = 0;
  while (const auto record = input.next()) {
    bytes += record->type == PERF_RECORD_SAMPLE ? record->bytes.size() : 0;
  }
  return bytes;
}

class WeaveTest : public testing::Test {
 protected:
  [[nodiscard]] std::string recorded(const Arguments& options) const {
    std::string path = directory_ / "perf.data";
    // The buffers have room for all stack copies, even if perf gets no processor to read them.
    Arguments command{"perf", "record", "-q", "-F", "1999", "-m", "8M", "-o", path};
    command.insert(command.end(), options.begin(), options.end());
    command.insert(command.end(), {"--", "/bin/sh", "-c", kTwoWorkers});
    const auto result = test::run(command);
    EXPECT_EQ(result.status, ExitStatus{}) << result.err;
    return path;
  }
  std::variant<WeaveSummary, Untouched> weave_to(const std::string& input,
                                                 const std::string& output,
                                                 const RecordingContext& context = {}) {
    options_.input = input;
    options_.output = output;
    options_.image_path = [this](std::uint32_t pid) {
      return directory_ / fmt::format("names-{}", pid);
    };
    RecordedFiles files;
    return weave(options_, context, files);
  }
  WeaveSummary woven(const std::string& input, const std::string& output,
                     const RecordingContext& context = {}) {
    auto result = weave_to(input, output, context);
    const auto* const why = std::get_if<Untouched>(&result);
    EXPECT_EQ(why, nullptr) << why->why;
    return std::get<WeaveSummary>(std::move(result));
  }
  [[nodiscard]] std::string output() const { return directory_ / "woven.data"; }

  // Compare lines individually, since perf sorts equal times arbitrarily.
  static std::vector<std::string> script(const std::string& path, const std::string& fields) {
    const auto result = test::run({"perf", "script", "-F", fields, "-i", path});
    EXPECT_EQ(result.status, ExitStatus{}) << result.err;
    std::vector<std::string> lines;
    for (const auto line : base::split(result.out, '\n')) {
      lines.emplace_back(line);
    }
    std::ranges::sort(lines);
    return lines;
  }
  void expect_same(const std::string& before, const std::string& fields) const {
    const auto lines = script(before, fields);
    EXPECT_GT(lines.size(), 50U);
    EXPECT_TRUE(script(output(), fields) == lines) << fields;
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& entry : fs::directory_iterator{directory_.path()}) {
      result.push_back(entry.path().filename());
    }
    std::ranges::sort(result);
    return result;
  }

  test::TempDir directory_;
  WeaveOptions options_;
};

TEST_F(WeaveTest, KeepsARecordingWithoutStacks) {
  const auto input = recorded({"-e", "cpu-clock"});
  const auto before = test::contents_of(input);
  const auto summary = woven(input, output());
  expect_same(input, "comm,tid,time,period,event,ip");
  EXPECT_EQ(summary.unwound, 0U);
  EXPECT_GT(summary.samples, 50U);
  EXPECT_TRUE(test::contents_of(input) == before) << "only OUTPUT is written";
}

TEST_F(WeaveTest, CallchainsByFramePointersKeepTheirSamples) {
  const auto input = recorded({"-e", "cpu-clock", "-g"});
  EXPECT_EQ(woven(input, output()).unwound, 0U);
  expect_same(input, "comm,tid,time,period,event");
}

TEST_F(WeaveTest, CompressedStacksAreUnwound) {
  const auto input = recorded({"-e", "cpu-clock", "-z", "--call-graph", "dwarf,16384"});
  const auto summary = woven(input, output());
  expect_same(input, "comm,tid,time,period,event");
  EXPECT_EQ(summary.unwound, summary.samples);
  EXPECT_LT((summary.cut + summary.no_information + summary.broken) * 10, summary.samples);
  // The size of the records other than samples depends on the machine, for example on other BPF
  // programs.
  EXPECT_LT(bytes_of_samples(output()), summary.samples * 1000);
  EXPECT_EQ(summary.bytes_after, fs::file_size(output()));
  EXPECT_LE(summary.bytes_before, fs::file_size(input));
  EXPECT_GE(summary.longest, 5U);
  EXPECT_EQ(summary.damage, "");
}

TEST_F(WeaveTest, EventsThatSampleDifferentThingsKeepTheirSamples) {
  const auto input =
      recorded({"-e", "cpu-clock/call-graph=dwarf/", "-e", "task-clock/call-graph=fp/"});
  const auto summary = woven(input, output());
  expect_same(input, "comm,tid,time,period,event");
  EXPECT_GT(summary.unwound, 0U);
  EXPECT_LT(summary.unwound, summary.samples);
}

// A post-processed file is a recording like any other.
TEST_F(WeaveTest, AgainChangesNothing) {
  const auto input = recorded({"-e", "cpu-clock", "--call-graph", "dwarf,16384"});
  (void)woven(input, output());
  const auto fields = "comm,tid,time,period,event,ip";
  const auto lines = script(output(), fields);
  const auto summary = woven(output(), output());
  EXPECT_EQ(summary.unwound, 0U);
  EXPECT_TRUE(script(output(), fields) == lines);
}

// The shell as an interpreter: all of its code is the evaluator, and the process that forks the
// others had entered a function before the recording started.
class Shell : public StackSource {
 public:
  explicit Shell(const std::string& path) {
    auto input = opened(path);
    while (const auto record = input.next()) {
      const auto task = perfdata::parse_task(*record);
      if (task && record->type == PERF_RECORD_FORK && task->pid != task->parent_pid) {
        children.insert(task->pid);
        parent = task->parent_pid;
      }
      const auto mapping = perfdata::parse_mapping(*record);
      if (mapping && (mapping->protection & PROT_EXEC) != 0 && mapping->file.ends_with("/dash")) {
        auto& shells = context.interpreters[mapping->pid];
        shells.resize(1);
        shells[0].evaluator.push_back(
            {.begin = mapping->start, .end = mapping->start + mapping->size});
      }
    }
    context.stacks = this;
  }
  [[nodiscard]] sample::Stack at(const StackQuery& query) override {
    return query.pid == parent && query.tid == parent && query.plain > 0
               ? sample::Stack{.frames = {{.code = 1, .outermost = true}}}
               : sample::Stack{};
  }
  void each_name(const std::function<void(const sample::Code& name, std::uint32_t last_line)>& call)
      const override {
    call(name_, 0);
  }
  [[nodiscard]] bool has_every_sample() const override { return false; }
  [[nodiscard]] const sample::Code* name(std::uint32_t pid, std::uint64_t code) const override {
    return pid == parent && code == 1 ? &name_ : nullptr;
  }

  std::uint32_t parent = 0;
  std::set<std::uint32_t> children;
  RecordingContext context;

 private:
  sample::Code name_{.qualname = "before", .file = "shell.py"};
};

TEST_F(WeaveTest, ForkedProcessesHaveTheirParentsFrames) {
  const auto input = recorded({"-e", "cpu-clock", "--call-graph", "dwarf,16384"});
  Shell shell{input};
  ASSERT_EQ(shell.children.size(), 1U) << "the shell forks one child and works itself";
  const auto summary = woven(input, output(), shell.context);
  EXPECT_GT(summary.extended * 10, summary.samples * 9);
  std::map<std::uint32_t, std::set<std::uint64_t>> roots;
  auto result = opened(output());
  perfdata::Sample sample;
  while (const auto record = result.next()) {
    if (result.parse(*record, sample) && sample.chain.size() > 5) {
      roots[sample.pid].insert(sample.chain.back());
    }
  }
  const auto child = *shell.children.begin();
  std::vector<std::uint64_t> both;
  std::ranges::set_intersection(roots[shell.parent], roots[child], std::back_inserter(both));
  EXPECT_EQ(both.size(), 1U) << "the same function at the root of both";
  for (const auto& image : summary.images) {
    std::ofstream{image.path}.write(reinterpret_cast<const char*>(image.image.bytes.data()),
                                    static_cast<std::streamsize>(image.image.bytes.size()));
  }
  const auto lines = script(output(), "ip,sym");
  EXPECT_EQ(
      std::ranges::count_if(
          lines, [](const std::string& line) { return line.ends_with("py::before:shell.py"); }),
      static_cast<std::ptrdiff_t>(summary.extended));
}

TEST_F(WeaveTest, LeavesUntreatableFilesUnchanged) {
  const auto piped =
      test::run({"perf", "record", "-q", "-e", "cpu-clock", "-o", "-", "--", "true"});
  const auto input = directory_.file("piped", piped.out);
  const auto result = weave_to(input, output());
  ASSERT_TRUE(std::holds_alternative<Untouched>(result));
  EXPECT_THAT(std::get<Untouched>(result).why, HasSubstr("pipe"));
  EXPECT_FALSE(std::get<Untouched>(result).cancelled);
  EXPECT_THAT(names(), ElementsAre("piped"));
  EXPECT_TRUE(test::contents_of(input) == piped.out);
}

TEST_F(WeaveTest, KeepsTheReadablePartOfADamagedFile) {
  const auto whole = recorded({"-e", "cpu-clock", "--call-graph", "dwarf,1024"});
  const auto input =
      directory_.file("cut.data", test::contents_of(whole).substr(0, fs::file_size(whole) / 2));
  auto result = weave_to(input, output());
  if (const auto* const why = std::get_if<Untouched>(&result)) {
    EXPECT_NE(why->why, "");
    return;
  }
  const auto& summary = std::get<WeaveSummary>(result);
  EXPECT_NE(summary.damage, "");
  EXPECT_GT(summary.samples, 10U);
}

}  // namespace
}  // namespace pyinject::weave
