// Which files `report 'web.data.*'` reads.
#include "cli/profile_source.hpp"
#include "cli/reporter.hpp"
#include "pyinject/base/error.hpp"
#include "support/made_perf_data.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace pyinject::cli {
namespace {

class ReadRecordings : public testing::Test {
 protected:
  void make(const std::string& name, std::uint64_t samples) const {
    test::MadePerfData data;
    data.events = {test::made_event(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                    PERF_SAMPLE_CALLCHAIN)};
    for (std::uint64_t time = 1; time <= samples; ++time) {
      data.data += test::made_record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER,
                                     test::words(0x10000, 7 | std::uint64_t{7} << 32U, time, 0));
    }
    (void)directory_.file(name, data.bytes());
  }
  [[nodiscard]] std::size_t samples_in(const std::vector<std::string>& names) {
    std::vector<std::string> files;
    for (const auto& name : names) {
      files.push_back(directory_ / name);
    }
    const auto profile = read_recordings(files, reporter_, false);
    return profile ? profile->samples.size() : 0;
  }
  [[nodiscard]] const test::TempDir& directory() const { return directory_; }

 private:
  test::TempDir directory_;
  Reporter reporter_{"report", {}, base::LogLevel::kError, false};
};

TEST_F(ReadRecordings, TakesWhatAPatternMatchesWithoutWhatStandsBesideARecording) {
  make("web.data.1", 2);
  make("web.data.2", 3);
  make("web.data.2.raw", 50);  // the same samples, as perf wrote them
  make("alone.raw", 7);
  std::filesystem::create_directory(directory() / "web.data.1.names");
  EXPECT_EQ(samples_in({"web.data.*"}), 5U);
  EXPECT_EQ(samples_in({"web.data.*", "alone.raw"}), 12U);
  EXPECT_EQ(samples_in({"web.data.2.raw"}), 50U);
}

TEST_F(ReadRecordings, SaysThatAPatternMatchesNone) {
  EXPECT_THROW((void)samples_in({"web.data.*"}), base::Error);
  std::filesystem::create_directory(directory() / "web.data.1.names");
  std::filesystem::create_directory(directory() / "web.data.2.names");
  EXPECT_THROW((void)samples_in({"web.data.*"}), base::Error);
}

}  // namespace
}  // namespace pyinject::cli
