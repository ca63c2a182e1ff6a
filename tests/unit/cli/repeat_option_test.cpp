#include "cli/repeat_option.hpp"

#include "cli/command_line.hpp"
#include "unit/cli/mistake.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pyinject::cli {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;

using Words = std::vector<std::string>;

TEST(RepeatOption, SpansHaveAUnit) {
  EXPECT_EQ(parse_span("500ms"), milliseconds{500});
  EXPECT_EQ(parse_span("30s"), seconds{30});
  EXPECT_EQ(parse_span("5m"), minutes{5});
  EXPECT_EQ(parse_span("1h"), hours{1});
  EXPECT_EQ(parse_span("1.5s"), milliseconds{1500});
  for (const auto* text : {"", "s", "30", "30 s", "30S", "-1s", "0s", "1e3s", "5min", "1d", "nans",
                           "infs", "30s ", "9000h", "0.0001ms"}) {
    EXPECT_FALSE(parse_span(text)) << text;
  }
}

RecordCommand parse_record_command(const Words& words) {
  return std::get<RecordCommand>(parse_command_line(words, {}).options);
}

TEST(RepeatOption, HasDurationPeriodAndNumber) {
  const auto line = parse_record_command({"record", "-p", "1", "--repeat", "30s/5m"});
  ASSERT_TRUE(line.repeat);
  EXPECT_EQ(line.repeat->duration, seconds{30});
  EXPECT_EQ(line.repeat->period, minutes{5});
  EXPECT_EQ(line.repeat->keep, 12U);
  EXPECT_FALSE(line.record.launches());
  const auto other =
      parse_record_command({"record", "-a", "--repeat=1s/1s", "--keep", "3", "-o", "x"});
  ASSERT_TRUE(other.repeat);
  EXPECT_EQ(other.repeat->keep, 3U);
  EXPECT_FALSE(parse_record_command({"record", "-p", "1"}).repeat);
}

TEST(RepeatOption, ShareOfACpuIsAPercentage) {
  EXPECT_EQ(parse_cpu_share("1%"), 0.01);
  EXPECT_EQ(parse_cpu_share("0.5%"), 0.005);
  EXPECT_EQ(parse_cpu_share("1"), 0.01);
  EXPECT_EQ(parse_cpu_share("250"), 2.5);
  for (const auto* text :
       {"", "%", "0", "0%", "-1%", "1%%", "1 %", "one", "nan", "inf", "1e1", "10001%", "1%x"}) {
    EXPECT_FALSE(parse_cpu_share(text)) << text;
  }
}

Mistake record_mistake(Words words) {
  words.insert(words.begin(), "record");
  return mistake(words);
}

TEST(RepeatOption, RefusesWhatCannotBeRepeated) {
  const auto with = [](Words more) {
    const Words words{"-p", "1", "--repeat", "1s/2s"};
    more.insert(more.begin(), words.begin(), words.end());
    return record_mistake(std::move(more));
  };
  EXPECT_EQ(with({}).status, 0);
  EXPECT_EQ(with({"--", "sleep", "1"}).status, 129);
  EXPECT_THAT(with({"sleep", "1"}).text, HasSubstr("not with a COMMAND"));
  EXPECT_EQ(record_mistake({"--repeat", "1s/2s", "--", "python3"}).status, 129);
  EXPECT_EQ(record_mistake({"--repeat", "1s/2s"}).status, 129) << "no target";
  EXPECT_EQ(with({"-o", "-"}).status, 129);
  EXPECT_EQ(with({"--switch-output=1G"}).status, 129);
  EXPECT_EQ(with({"--timestamp-filename"}).status, 129);
  EXPECT_EQ(with({"--threads"}).status, 129);
  EXPECT_EQ(with({"--keep", "0"}).status, 129);
  EXPECT_EQ(with({"--keep", "many"}).status, 129);
  EXPECT_EQ(record_mistake({"-p", "1", "--keep", "2"}).status, 129);
  EXPECT_EQ(with({"-F", "99", "--max-cpu", "1%"}).status, 0);
  EXPECT_THAT(with({"-F", "99", "--max-cpu", "some"}).text,
              HasSubstr("--max-cpu some: expected a share of one CPU greater than 0, as in 1%"));
  for (const auto& rate : {Words{}, {"-F", "max"}, {"-c", "1000"}, {"-F", "99", "-c", "1000"}}) {
    Words words{"--max-cpu", "1%"};
    words.insert(words.end(), rate.begin(), rate.end());
    EXPECT_THAT(with(words).text, HasSubstr("give the highest one as a number, as in -F 99"));
  }
  EXPECT_THAT(record_mistake({"-p", "1", "-F", "99", "--max-cpu", "1%"}).text,
              HasSubstr("--max-cpu needs --repeat"));
  for (const auto* text : {"30s", "30s/", "/5m", "30s/5", "5m/30s", "1s/2s/3s", "x/y"}) {
    EXPECT_EQ(record_mistake({"-p", "1", "--repeat", text}).status, 129) << text;
  }
}

}  // namespace
}  // namespace pyinject::cli
