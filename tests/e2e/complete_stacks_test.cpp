// Every sample has its complete stack, from <module> to the innermost function, in each perf.
#include "e2e/expected_trees.hpp"
#include "e2e/perf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "support/statistics.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

namespace pyinject::test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

// A single thread may have slightly fewer.
constexpr double kAsked = 0.99;
constexpr double kAskedOfAThread = 0.97;

void expect_complete(const Agreements& found, const std::string& messages) {
  const auto has = [](const Agreement& part, double share) {
    return share_is_at_least({.count = part.right, .all = part.samples}, share);
  };
  SCOPED_TRACE(describe(found) + messages);
  EXPECT_GE(found.all.samples, 500U);
  EXPECT_TRUE(has(found.all, kAsked));
  EXPECT_EQ(found.others, 0U);
  for (const auto& [thread, part] : found.threads) {
    EXPECT_TRUE(has(part, kAskedOfAThread)) << thread;
  }
}

std::vector<std::string> record_arguments(const std::string& perf, const std::string& pid,
                                          const std::string& data) {
  return {"--perf", *find_perf(perf), "-p", pid, "-F", "999", "-e", "cpu-clock", "-o", data};
}

bool has_numpy(const Interpreter& python) {
  auto command = python.command;
  command.insert(command.end(), {"-c", "import numpy"});
  return run(command).status == ExitStatus{};
}

struct Recorder {
  std::string perf;
  int minor = 0;
};

// NOLINTNEXTLINE(readability-identifier-naming): the name that GoogleTest looks for
void PrintTo(const Recorder& recorder, std::ostream* stream) {
  *stream << recorder.perf << " on 3." << recorder.minor;
}

struct RecorderName {
  template <typename Info>
  std::string operator()(const Info& info) const {
    std::string text = info.param.perf + "_py3_" + std::to_string(info.param.minor);
    std::ranges::replace(text, '.', '_');
    return text;
  }
};

class CompleteStacks : public testing::TestWithParam<Recorder> {
 protected:
  void SetUp() override {
    python_ = plain_interpreter(GetParam().minor);
    if (!python_ || !find_perf(GetParam().perf)) {
      GTEST_SKIP() << "no " << GetParam().perf << " or no CPython 3." << GetParam().minor
                   << " (scripts/pythons)";
    }
  }
  [[nodiscard]] const Interpreter& python() const { return *python_; }

 private:
  std::optional<Interpreter> python_;
};

// Main loops that were entered before the attach: below C code, in a constructor, in a generator,
// in an event loop, and one that calls nothing; children; and frames that were entered during an
// earlier recording.
TEST_P(CompleteStacks, AreRecordedOfThreadsEventLoopsHotLoopsAndChildren) {
  const auto& perf = GetParam().perf;
  const TempDir directory;
  CallTreeServer target{python()};
  const auto record = [&](const std::string& data, auto work) {
    RunningRecord running{record_arguments(perf, target.pid(), data)};
    work();
    EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
    target.pause();
    for (const auto& reader : perfs_that_read(*find_perf(perf))) {
      SCOPED_TRACE(reader);
      const auto found = compare(reader, data, target.trees());
      expect_complete(found, running.child().err());
      RecordProperty("right_percent", std::to_string(found.all.percent()));
      RecordProperty("wrong", found.wrong);
      EXPECT_GE(found.threads.size(), 6U);
    }
    target.resume();
  };
  record(directory / "first", [&] {
    target.work(20, seconds{1});
    (void)target.fork(300);
    target.nest();
  });
  if (has_numpy(python())) {
    const auto called =
        frames_between(*find_perf(perf), directory / "first", "arrays", "burn_array", "umath");
    EXPECT_GE(called.samples, 5U);
    EXPECT_EQ(called.right, called.samples) << "numpy's frames are misplaced";
  }
  if (perf == "perf") {
    record(directory / "second", [&] {
      target.work(20, seconds{1});
      (void)target.fork(300);
    });
  }
  target.work(1);
  EXPECT_EQ(target.finish(), ExitStatus{});
}

INSTANTIATE_TEST_SUITE_P(Perfs, CompleteStacks,
                         testing::Values(Recorder{"perf", 12}, Recorder{"perf", 13},
                                         Recorder{"perf", 14}, Recorder{"perf", 15},
                                         Recorder{"perf6.12", 12}, Recorder{"perf7", 13}),
                         RecorderName{});

class DeepStacks : public CompleteStacks {};

// 200 calls deep, every sixth through C code: either the stacks are complete, or the tool has
// warned.
TEST_P(DeepStacks, AreCompleteOrTheCutIsAnnounced) {
  const TempDir directory;
  const std::string data = directory / "data";
  PythonOptions deep;
  deep.args = {"deep"};
  CallTreeServer target{python(), deep};
  RunningRecord running{record_arguments(GetParam().perf, target.pid(), data)};
  target.work(100, seconds{1});
  ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  target.pause();
  const auto found =
      compare(*find_perf(GetParam().perf), data, target.trees(), {"--max-stack", "2000"});
  RecordProperty("right_percent", std::to_string(found.all.percent()));
  if (found.all.percent() < 100 * kAsked) {
    EXPECT_THAT(running.child().err(), HasSubstr("will be cut")) << describe(found);
  }
}

INSTANTIATE_TEST_SUITE_P(Perfs, DeepStacks,
                         testing::Values(Recorder{"perf", 12}, Recorder{"perf", 13},
                                         Recorder{"perf", 14}, Recorder{"perf", 15}),
                         RecorderName{});

}  // namespace
}  // namespace pyinject::test
