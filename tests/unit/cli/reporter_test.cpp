#include "cli/reporter.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "pyinject/record/plan.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>

namespace pyinject::cli {
namespace {

using base::LogLevel;
using nlohmann::json;
using targets::EventKind;
using testing::ElementsAre;
using testing::HasSubstr;

// The lines that ACTION writes to stderr.
template <typename Action>
std::vector<std::string> lines_of(const Action& action) {
  testing::internal::CaptureStderr();
  action();
  const auto text = testing::internal::GetCapturedStderr();
  std::vector<std::string> lines;
  for (const auto line : base::split(base::trim(text), '\n')) {
    lines.emplace_back(line);
  }
  return lines;
}

std::vector<std::string> files_in(const test::TempDir& directory) {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator{directory.path()}) {
    names.push_back(file.path().filename());
  }
  return names;
}

TEST(JsonLog, EachMessageIsOneObjectOnALine) {
  const ReportOptions options{.json = true};
  Reporter reporter{"record", options, LogLevel::kInfo, true};
  const auto lines = lines_of([&] {
    reporter.logger().log(LogLevel::kWarning, "a \"quoted\"\nsecond line \xff");
    reporter.logger().log(LogLevel::kDebug, "not asked for");
  });
  ASSERT_EQ(lines.size(), 1U);
  const auto object = json::parse(lines[0]);
  EXPECT_EQ(object["level"], "warning");
  EXPECT_EQ(object["message"], "a \"quoted\"\nsecond line \xef\xbf\xbd");
  EXPECT_TRUE(object["time"].get<std::string>().ends_with('Z'));
  EXPECT_FALSE(object.contains("event"));
}

TEST(JsonLog, EventsHaveTheirFields) {
  const ReportOptions options{.json = true};
  Reporter reporter{"record", options, LogLevel::kInfo, false};
  const auto lines = lines_of([&] {
    reporter.note({.kind = EventKind::kActivated,
                   .pid = base::Pid{12},
                   .duration = std::chrono::microseconds{1034}});
    reporter.note({.kind = EventKind::kSkipped,
                   .pid = base::Pid{13},
                   .reason = python::Reason::kPythonTooOld});
    reporter.note(
        {.kind = EventKind::kSkipped, .pid = base::Pid{14}, .reason = python::Reason::kNotPython});
  });
  ASSERT_EQ(lines.size(), 2U) << "not_python is only reported with -v";
  const auto activated = json::parse(lines[0]);
  EXPECT_EQ(activated["event"], "activated");
  EXPECT_EQ(activated["pid"], 12);
  EXPECT_TRUE(activated["reason"].is_null());
  EXPECT_EQ(activated["duration_us"], 1034);
  EXPECT_EQ(activated["message"], "pid 12: activated");
  const auto skipped = json::parse(lines[1]);
  EXPECT_EQ(skipped["event"], "skipped");
  EXPECT_EQ(skipped["reason"], "python_too_old");
}

TEST(TextLog, IsAsItWasAndHasNoEvents) {
  const ReportOptions options;
  Reporter reporter{"record", options, LogLevel::kInfo, false};
  EXPECT_THAT(lines_of([&] {
                reporter.logger().log(LogLevel::kWarning, "text");
                reporter.note({.kind = EventKind::kActivated, .pid = base::Pid{12}});
              }),
              ElementsAre("perf-pyinject: warning: text"));
}

TEST(StatsFile, IsReplacedAndNothingElseIsLeft) {
  const test::TempDir directory;
  const ReportOptions options{.stats = directory.file("stats.json", "old")};
  Reporter reporter{"activate", options, LogLevel::kInfo, false};
  targets::Stats stats;
  stats.activated = 3;
  reporter.add(stats);
  EXPECT_EQ(reporter.finish(7), 7);
  const auto object = json::parse(base::read_file(*options.stats).value_or(""));
  EXPECT_EQ(object["verb"], "activate");
  EXPECT_EQ(object["exit_status"], 7);
  EXPECT_EQ(object["counters"]["Activated"], 3);
  EXPECT_THAT(files_in(directory), ElementsAre("stats.json"));
}

TEST(StatsFile, ALinkStaysOne) {
  const test::TempDir directory;
  const std::string file = directory.file("stats.json", "old");
  const ReportOptions options{.stats = directory / "link"};
  std::filesystem::create_symlink(file, *options.stats);
  Reporter reporter{"activate", options, LogLevel::kInfo, false};
  EXPECT_EQ(reporter.finish(0), 0);
  EXPECT_TRUE(std::filesystem::is_symlink(*options.stats));
  EXPECT_THAT(base::read_file(file).value_or(""), HasSubstr("\"schema\": 1"));
}

TEST(StatsFile, FailsIfItCannotBeWritten) {
  const test::TempDir directory;
  const ReportOptions options{.stats = directory / "none/stats.json"};
  Reporter reporter{"record", options, LogLevel::kInfo, false};
  int status = 0;
  EXPECT_THAT(lines_of([&] { status = reporter.finish(0); }),
              ElementsAre(AllOf(HasSubstr("error: cannot write --stats: "),
                                HasSubstr(directory / "none: No such file"))));
  EXPECT_EQ(status, record::kFailure);
  (void)lines_of([&] { status = reporter.finish(3); });
  EXPECT_EQ(status, 3) << "the first failure determines the status";
}

}  // namespace
}  // namespace pyinject::cli
