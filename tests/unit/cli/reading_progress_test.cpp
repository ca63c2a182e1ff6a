#include "cli/reading_progress.hpp"

#include <gtest/gtest.h>

namespace pyinject::cli {
namespace {

using std::chrono::milliseconds;

constexpr ReadingProgress::Time kBegin{};

TEST(ReadingProgress, IsShownAfterASecondAndErased) {
  ReadingProgress progress{"perf.data", kBegin};
  EXPECT_EQ(progress.line(0.1, kBegin + milliseconds{999}), "");
  EXPECT_EQ(progress.line(0.2, kBegin + milliseconds{1000}), "\r\x1b[Kreading perf.data 20 %");
  EXPECT_EQ(progress.line(0.25, kBegin + milliseconds{1100}), "") << "not too often";
  EXPECT_EQ(progress.line(0.5, kBegin + milliseconds{1200}), "\r\x1b[Kreading perf.data 50 %");
  EXPECT_EQ(progress.end(), "\r\x1b[K");
  EXPECT_EQ(progress.end(), "");
}

TEST(ReadingProgress, IsNotShownForSmallFiles) {
  ReadingProgress progress{"perf.data", kBegin};
  EXPECT_EQ(progress.line(0.9, kBegin + milliseconds{500}), "");
  EXPECT_EQ(progress.end(), "");
}

}  // namespace
}  // namespace pyinject::cli
