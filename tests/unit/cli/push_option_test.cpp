#include "cli/push_option.hpp"

#include "cli/command_line.hpp"
#include "unit/cli/mistake.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pyinject::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

Words push_words(const Words& more) {
  Words words{"record", "-p", "1", "--repeat", "1s/2s"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(PushOption, TakesSeveralStoresAndLabels) {
  const auto line = parse_command_line(
      push_words({"--push", "pyroscope=http://127.0.0.1:4040", "--push=pprof-dir=/srv/p", "--label",
                  "a=1", "--label", "b=2", "--spool", "/srv/spool", "--push-credentials", "c"}),
      {});
  const auto command = std::get<RecordCommand>(line.options);
  ASSERT_TRUE(command.push);
  ASSERT_EQ(command.push->destinations.size(), 2U);
  EXPECT_EQ(command.push->destinations[1].name(), "pprof-dir=/srv/p");
  EXPECT_EQ(command.push->labels.size(), 2U);
  EXPECT_EQ(command.push->spool, "/srv/spool");
  EXPECT_EQ(command.push_credentials, "c");
  const auto without = parse_command_line(push_words({}), {});
  EXPECT_FALSE(std::get<RecordCommand>(without.options).push);
}

TEST(PushOption, WrongValuesAreRefused) {
  const auto text_of = [](const Words& more) {
    const auto found = mistake(push_words(more));
    EXPECT_EQ(found.status, 129);
    return found.text;
  };
  const std::string url = "parca=http://127.0.0.1:1";
  EXPECT_THAT(
      text_of({"--push", "zipkin=http://x"}),
      HasSubstr("--push zipkin: expected pyroscope=URL, parca=URL, otlp=URL, pprof-dir=DIR"));
  EXPECT_THAT(text_of({"--push", "pyroscope=http://u:hunter2@x"}),
              AllOf(HasSubstr("--push-credentials FILE"), Not(HasSubstr("hunter2"))));
  EXPECT_THAT(text_of({"--push", url, "--label", "a b=c"}), HasSubstr("--label a b=c: expected"));
  EXPECT_THAT(text_of({"--push", url, "--spool", ""}), HasSubstr("--spool: its value is empty"));
  EXPECT_THAT(text_of({"--label", "a=b"}), HasSubstr("--label needs --push"));
  EXPECT_THAT(text_of({"--spool", "/x"}), HasSubstr("--spool needs --push"));
  EXPECT_THAT(
      text_of({"--push", url, "--push", "parca=http://127.0.0.1:2", "--push-credentials", "c"}),
      HasSubstr("is for one server"));
  Words many{"--push", url};
  for (int i = 0; i <= 16; ++i) {
    many.insert(many.end(), {"--label", "l" + std::to_string(i) + "=x"});
  }
  EXPECT_THAT(text_of(many), HasSubstr("at most 16"));
  const auto piped = mistake({"record", "-p", "1", "-o", "-", "--push", url});
  EXPECT_EQ(piped.status, 129);
  EXPECT_THAT(piped.text, HasSubstr("--push needs perf's output in one file"));
}

}  // namespace
}  // namespace pyinject::cli
