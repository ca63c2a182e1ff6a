// examples/perf-pyinject.service works.
#include "base/file.hpp"
#include "base/text.hpp"
#include "cli/command_line.hpp"
#include "cli/verbs.hpp"
#include "support/child_process.hpp"
#include "support/paths.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <regex>

#include <unistd.h>

namespace pyinject::test {
namespace {

std::string unit() {
  return base::read_file(source_dir() + "/examples/perf-pyinject.service").value_or("");
}

TEST(ServiceExample, CallsTheToolAsItCanBeCalled) {
  const std::string text = std::regex_replace(unit(), std::regex{R"(\\\n\s*)"}, "");
  std::smatch match;
  ASSERT_TRUE(
      std::regex_search(text, match, std::regex{"\nExecStart=[^ ]*/perf-pyinject ([^\n]*)"}));
  const std::string arguments = match[1];
  std::vector<std::string> words;
  for (const auto word : base::split(arguments, ' ')) {
    words.emplace_back(word);
  }
  const auto line = cli::parse_command_line(words, {});
  ASSERT_EQ(line.verb, &cli::record_verb);
  const auto command = std::get<cli::RecordCommand>(line.options);
  EXPECT_EQ(command.record.scope().cgroup, "system.slice/shop.service");
  EXPECT_EQ(command.record.engine, record::EngineChoice::kAuto);
  EXPECT_TRUE(line.report.json);
  ASSERT_TRUE(command.repeat);
  EXPECT_EQ(command.repeat->duration, std::chrono::seconds{30});
  EXPECT_EQ(command.repeat->period, std::chrono::minutes{5});
  EXPECT_EQ(command.repeat->keep, 24U);
}

TEST(ServiceExample, SwitchesOffWhatItsKillOrderLeavesOn) {
  EXPECT_THAT(unit(), testing::HasSubstr("\nKillMode=process\n"));
  const std::string command = "\nExecStopPost=/usr/local/bin/perf-pyinject ";
  const auto at = unit().find(command);
  ASSERT_NE(at, std::string::npos);
  const auto rest = unit().substr(at + command.size());
  const std::string arguments = rest.substr(0, rest.find('\n'));
  std::vector<std::string> words;
  for (const auto word : base::split(arguments, ' ')) {
    words.emplace_back(word);
  }
  const auto line = cli::parse_command_line(words, {});
  ASSERT_EQ(line.verb, &cli::deactivate_verb);
  EXPECT_TRUE(std::get<cli::DeactivateCommand>(line.options).abandoned);
}

TEST(ServiceExample, SystemdHasNothingToSay) {
  if (::access("/usr/bin/systemd-analyze", X_OK) != 0) {
    GTEST_SKIP() << "no systemd-analyze";
  }
  const TempDir directory;
  const auto file = directory.file(
      "perf-pyinject.service",
      std::regex_replace(unit(), std::regex{"/usr/local/bin/perf-pyinject"}, tool()));
  const auto verified =
      run({"systemd-analyze", "verify", "--man=no", "--recursive-errors=no", file});
  EXPECT_EQ(verified.status, ExitStatus{});
  EXPECT_EQ(verified.out + verified.err, "");
}

}  // namespace
}  // namespace pyinject::test
