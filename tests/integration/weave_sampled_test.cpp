// Files of real perfs with a Python stack for each sample, post-processed and read by stock perf.
#include "base/text.hpp"
#include "perfdata/input.hpp"
#include "support/child_process.hpp"
#include "support/temp_dir.hpp"
#include "weave/recorded_files.hpp"
#include "weave/sampled_stacks.hpp"
#include "weave/weave.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace pyinject::weave {
namespace {

using test::ExitStatus;

using Arguments = std::vector<std::string>;

constexpr std::uint64_t kInner = 1;  // ids of code objects
constexpr std::uint64_t kOuter = 2;
constexpr const char* kWork = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";

std::string output_of(const Arguments& command) {
  const auto result = test::run(command);
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  return result.out;
}

class SampledStacksAndPerf : public testing::Test {
 protected:
  void record(const Arguments& options, const Arguments& command) const {
    Arguments all{"perf", "record", "-q", "-o", input()};
    all.insert(all.end(), options.begin(), options.end());
    all.emplace_back("--");
    all.insert(all.end(), command.begin(), command.end());
    (void)output_of(all);
  }

  // Each sample is in line 100 to 103 of inner(), called by line 20 of outer().
  void read_stacks() {
    auto file = std::get<perfdata::Input>(perfdata::Input::open(input()));
    perfdata::Sample sample;
    while (const auto record = file.next()) {
      if (file.parse(*record, sample)) {
        context_.interpreters[sample.pid].resize(1);
        stacks_.add({.pid = sample.pid,
                     .tid = sample.tid,
                     .time = sample.time,
                     .frames = {{.code = kInner, .line = 100 + samples_ % 4},
                                {.code = kOuter, .line = 20, .outermost = true}}});
        ++samples_;
      }
    }
    stacks_.name({.number = kInner, .qualname = "inner", .file = "/srv/app.py", .first_line = 99});
    stacks_.name({.number = kOuter, .qualname = "outer", .file = "/srv/app.py", .first_line = 20});
    context_.stacks = &stacks_;
  }

  WeaveSummary weave_it() {
    options_.input = input();
    options_.output = output();
    options_.image_path = [this](std::uint32_t pid) {
      return directory_ / fmt::format("names-{}", pid);
    };
    RecordedFiles files;
    auto result = weave(options_, context_, files);
    const auto* const why = std::get_if<Untouched>(&result);
    EXPECT_EQ(why, nullptr) << why->why;
    auto summary = std::get<WeaveSummary>(std::move(result));
    for (const auto& image : summary.images) {
      std::ofstream{image.path}.write(reinterpret_cast<const char*>(image.image.bytes.data()),
                                      static_cast<std::streamsize>(image.image.bytes.size()));
    }
    return summary;
  }
  [[nodiscard]] std::string input() const { return directory_ / "perf.data"; }
  [[nodiscard]] std::string output() const { return directory_ / "woven.data"; }

  // The distinct lines of perf's output that contain TEXT, without surrounding blanks.
  [[nodiscard]] std::set<std::string> lines_with(const std::string& text,
                                                 const Arguments& options) const {
    Arguments command{"perf"};
    command.insert(command.end(), options.begin(), options.end());
    command.insert(command.end(), {"-i", output()});
    std::set<std::string> lines;
    const auto out = output_of(command);
    for (const auto line : base::split(out, '\n')) {
      if (line.find(text) != std::string_view::npos) {
        lines.emplace(base::trim(line));
      }
    }
    return lines;
  }

  test::TempDir directory_;
  SampledStacks stacks_;
  RecordingContext context_;
  WeaveOptions options_;
  std::uint32_t samples_ = 0;
};

TEST_F(SampledStacksAndPerf, OffsetsOfSymbolsAreLines) {
  record({"-e", "cpu-clock", "-F", "1999", "-g"}, {"/bin/sh", "-c", kWork});
  read_stacks();
  const auto summary = weave_it();
  EXPECT_EQ(summary.extended, summary.samples);
  EXPECT_EQ(summary.without_record, 0U);
  std::set<std::string> inner;
  for (const auto& line : lines_with("py::inner", {"script", "-F", "ip,sym,symoff"})) {
    inner.insert(line.substr(line.find("py::")));
  }
  EXPECT_THAT(inner,
              testing::ElementsAre("py::inner:/srv/app.py+0x11", "py::inner:/srv/app.py+0x15",
                                   "py::inner:/srv/app.py+0x19", "py::inner:/srv/app.py+0xd"));
  const auto outer = lines_with("py::outer", {"script", "-F", "ip,sym,symoff"});
  ASSERT_EQ(outer.size(), 1U);
  EXPECT_TRUE(outer.begin()->ends_with("py::outer:/srv/app.py+0x9"));
}

TEST_F(SampledStacksAndPerf, PerfScriptShowsLinesOfSourceFiles) {
  record({"-e", "cpu-clock", "-F", "1999", "-g"}, {"/bin/sh", "-c", kWork});
  read_stacks();
  (void)weave_it();
  const auto lines = lines_with("app.py:", {"script", "-F", "ip,sym,srcline"});
  std::set<std::string> found;
  for (const auto& line : lines) {
    if (const auto at = line.rfind("app.py:"); at != std::string::npos) {
      found.insert(line.substr(at));
    }
  }
  for (const auto* const line :
       {"app.py:20", "app.py:100", "app.py:101", "app.py:102", "app.py:103"}) {
    EXPECT_THAT(found, testing::Contains(line));
  }
}

TEST_F(SampledStacksAndPerf, PerfReportShowsTheSharesOfLines) {
  record({"-e", "cpu-clock", "-F", "1999", "-g"}, {"/bin/sh", "-c", kWork});
  read_stacks();
  (void)weave_it();
  const auto lines = lines_with("py::", {"report", "--stdio", "--children", "-g", "none", "-s",
                                         "sym,srcline", "--no-inline"});
  ASSERT_EQ(lines.size(), 5U) << testing::PrintToString(lines);
  for (const auto* const line : {"app.py:100", "app.py:101", "app.py:102", "app.py:103"}) {
    const auto found = std::ranges::find_if(
        lines, [line](const std::string& each) { return each.ends_with(line); });
    ASSERT_NE(found, lines.end()) << line;
    EXPECT_NEAR(std::strtod(found->c_str(), nullptr), 25, 5) << *found;
  }
}

// One wait lasts 300 ms; there is no other long wait.
TEST_F(SampledStacksAndPerf, PeriodsAreTimesOffTheProcessor) {
  record({"-e", "context-switches/period=1/", "--switch-events", "-g"}, {"sleep", "0.3"});
  options_.flags.off_cpu = true;
  EXPECT_GT(weave_it().off_cpu, 0U);
  std::uint64_t longest = 0;
  for (const auto& line : lines_with("sleep", {"script", "-F", "comm,period", "-G"})) {
    longest = std::max<std::uint64_t>(
        longest, std::strtoull(line.substr(line.rfind(' ') + 1).c_str(), nullptr, 10));
  }
  EXPECT_GT(longest, 297'000'000U);
  EXPECT_LT(longest, 30'000'000'000U);
}

}  // namespace
}  // namespace pyinject::weave
