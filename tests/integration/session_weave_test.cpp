// What happens to perf's files at the end of a recording; only the injection is a fake.
#include "perfdata/input.hpp"
#include "pyinject/base/child.hpp"
#include "pyinject/record/record_session.hpp"
#include "pyinject/targets/stop_signals.hpp"
#include "support/fake_python.hpp"
#include "support/temp_dir.hpp"
#include "support/until_worked.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <unistd.h>

namespace pyinject::record {
namespace {

using base::LogLevel;
using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

class Observer : public RecordObserver {
 public:
  void activated(const targets::ActiveTarget& /*target*/) override {}
  void progress(std::chrono::nanoseconds, std::optional<std::uint64_t>) override {}
  void post_processing(double, std::uint64_t) override {
    ++reports;
    if (cancel) {
      ::kill(::getpid(), SIGINT);
    }
  }
  void stopped() override {}
  void finished(const RecordSummary& result) override { summary = result; }

  bool cancel = false;
  int reports = 0;
  std::optional<RecordSummary> summary;
};

class RecordWeaves : public testing::Test {
 protected:
  RecordWeaves() {
    // perf's build-id cache.
    ::setenv("HOME", directory_.path().c_str(), 1);
    fs::create_directory(directory_ / "data");
    detector_.only = std::set<base::Pid>{target_.pid()};
  }
  ~RecordWeaves() override { ::setenv("HOME", home_.c_str(), 1); }
  RecordWeaves(const RecordWeaves&) = delete;
  RecordWeaves& operator=(const RecordWeaves&) = delete;

  int record(std::vector<std::string> perf_options) {
    plan_.targets = Processes{{target_.pid()}};
    plan_.command = test::until_worked(target_.pid(), std::chrono::milliseconds{500});
    plan_.maps.folder = directory_.path().string();
    plan_.perf_options = perf::PerfOptions{std::move(perf_options)};
    plan_.perf_options.add({"-F", "999", "--call-graph", "dwarf,4096", "-o", data()});
    targets::StopSignals stop;
    return record::record(plan_, detector_, injector_, logger_, observer_, stop).status;
  }
  [[nodiscard]] std::string data() const { return directory_ / "data/perf.data"; }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& entry : fs::directory_iterator{directory_ / "data"}) {
      result.push_back(entry.path().filename());
    }
    std::ranges::sort(result);
    return result;
  }
  static bool has_stacks(const std::string& path) {
    const auto opened = perfdata::Input::open(path);
    const auto* const input = std::get_if<perfdata::Input>(&opened);
    EXPECT_NE(input, nullptr) << path;
    return input != nullptr &&
           std::ranges::any_of(input->events(), &perfdata::Event::has_user_stacks);
  }

  std::string home_ = std::getenv("HOME") == nullptr ? "/" : std::getenv("HOME");
  base::Child target_{{.argv = {"sh", "-c", "while :; do :; done"}, .death_signal = SIGKILL}};
  test::TempDir directory_;
  test::FakeDetector detector_;
  test::FakeInjector injector_;
  test::RecordingLogger logger_;
  Observer observer_;
  RecordPlan plan_;
};

TEST_F(RecordWeaves, ReplacesItsFile) {
  EXPECT_EQ(record({}), 0);
  EXPECT_THAT(names(), ElementsAre("perf.data"));
  EXPECT_FALSE(has_stacks(data()));
  EXPECT_GT(observer_.reports, 0);
  ASSERT_TRUE(observer_.summary);
  ASSERT_EQ(observer_.summary->woven.size(), 1U);
  EXPECT_EQ(observer_.summary->woven[0].path, data());
  EXPECT_GT(observer_.summary->woven[0].summary.unwound, 50U);
  EXPECT_EQ(logger_.text(LogLevel::kError), "");
}

TEST_F(RecordWeaves, ReplacesEachFileOfASeries) {
  EXPECT_EQ(record({"-m", "4", "--switch-output=100K"}), 0);
  ASSERT_TRUE(observer_.summary);
  EXPECT_GE(observer_.summary->woven.size(), 2U);
  EXPECT_EQ(observer_.summary->woven.size(), observer_.summary->files.size());
  EXPECT_EQ(names().size(), observer_.summary->files.size());
  for (const auto& name : names()) {
    EXPECT_FALSE(has_stacks(directory_ / "data/" + name)) << name;
  }
}

TEST_F(RecordWeaves, KeepRawKeepsPerfsFile) {
  plan_.flags.keep_raw = true;
  EXPECT_EQ(record({}), 0);
  EXPECT_THAT(names(), ElementsAre("perf.data", "perf.data.raw"));
  EXPECT_FALSE(has_stacks(data()));
  EXPECT_TRUE(has_stacks(data() + ".raw"));
}

TEST_F(RecordWeaves, CancelKeepsPerfsFile) {
  observer_.cancel = true;
  for (const bool keep : {false, true}) {
    plan_.flags.keep_raw = keep;
    fs::remove(data());
    EXPECT_EQ(record({}), 130);
    EXPECT_THAT(names(), ElementsAre("perf.data"));
    EXPECT_TRUE(has_stacks(data()));
  }
  EXPECT_THAT(logger_.text(LogLevel::kWarning), HasSubstr("cancelled"));
  EXPECT_TRUE(injector_.on.empty());
}

// No data is lost if a series is cancelled: the remaining files are as perf wrote them.
TEST_F(RecordWeaves, CancelKeepsPerfsFilesOfASeries) {
  observer_.cancel = true;
  EXPECT_EQ(record({"-m", "4", "--switch-output=100K"}), 130);
  EXPECT_GE(names().size(), 2U);
  for (const auto& name : names()) {
    EXPECT_TRUE(has_stacks(directory_ / "data/" + name)) << name;
  }
}

}  // namespace
}  // namespace pyinject::record
