#include "cli/command_line.hpp"
#include "cli/verbs.hpp"
#include "pyinject/record/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pyinject::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Words = std::vector<std::string>;

std::string usage_error(const Words& words) {
  try {
    (void)parse_command_line(words, {});
  } catch (const CommandLineError& error) {
    EXPECT_EQ(error.status(), record::kUsage);
    return error.what();
  }
  return "none";
}

TEST(FunctionsOption, IsForRunningProcesses) {
  const auto line = std::get<RecordCommand>(
      parse_command_line(
          {"record", "--functions", "-p", "12", "-m", "64M", "-o", "x", "--", "sleep", "1"}, {})
          .options);
  EXPECT_TRUE(line.functions);
  EXPECT_THAT(line.record.perf_options.words(), ElementsAre("-m", "64M", "-o", "x"));
  EXPECT_THAT(line.record.command, ElementsAre("sleep", "1"));
  EXPECT_FALSE(
      std::get<RecordCommand>(parse_command_line({"record", "-p", "12"}, {}).options).functions);
  for (const auto& words : {Words{"record", "--functions", "-a"},
                            {"record", "--functions", "-u", "root"},
                            {"record", "--functions", "--", "python3", "app.py"}}) {
    EXPECT_THAT(usage_error(words), HasSubstr("--functions is for running processes: -p PID"));
  }
}

TEST(FunctionsOption, ExcludesWhatIsAboutStacks) {
  for (const auto& more : {Words{"--children"},
                           {"--no-backfill"},
                           {"--lines"},
                           {"--keep-raw"},
                           {"--repeat", "1s/1m"},
                           {"--stats", "x"}}) {
    Words words{"record", "--functions", "-p", "1"};
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(usage_error(words), "--functions does not work with " + more[0]);
  }
  EXPECT_THAT(usage_error({"record", "--functions", "-p", "1", "-o", "-"}),
              HasSubstr("writes to a file"));
}

TEST(FunctionsOption, RecordsEveryCall) {
  for (const auto& more :
       {Words{"-F", "99"}, {"-F99"}, {"--freq=99"}, {"-c", "2"}, {"--count", "2"}}) {
    Words words{"record", "--functions", "-p", "1"};
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_THAT(usage_error(words), HasSubstr("--functions records every call: not with -F or -c"));
  }
  EXPECT_EQ(usage_error({"record", "--functions", "-p", "1", "--overwrite"}),
            "--functions records every call: not with --overwrite");
  EXPECT_EQ(usage_error({"record", "--functions", "-p", "1", "-e", "cycles/freq=99/"}), "none");
}

TEST(FunctionsVerb, ReadsAFile) {
  const auto words = parse_command_line({"functions"}, {});
  EXPECT_EQ(words.verb, &functions_verb);
  const auto plain = std::get<FunctionsCommand>(words.options);
  EXPECT_EQ(plain.input, "perf.data");
  EXPECT_FALSE(plain.timeline);
  EXPECT_FALSE(plain.json);
  const auto line = std::get<FunctionsCommand>(
      parse_command_line({"functions", "-i", "a file", "--timeline", "--json"}, {}).options);
  EXPECT_EQ(line.input, "a file");
  EXPECT_TRUE(line.timeline);
  EXPECT_TRUE(line.json);
  const auto operand = parse_command_line({"functions", "calls.data"}, {});
  EXPECT_EQ(std::get<FunctionsCommand>(operand.options).input, "calls.data");
  EXPECT_EQ(usage_error({"functions", "-i", "a", "b"}), "functions: give one FILE");
  EXPECT_THAT(usage_error({"functions", "-p", "1"}), HasSubstr("unknown option -p"));
}

}  // namespace
}  // namespace pyinject::cli
