// The machine-readable output of a run: --stats and --log-format json.
#include "base/file.hpp"
#include "base/text.hpp"
#include "e2e/served_tree.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace pyinject::test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::Gt;

class Figures : public testing::Test {
 protected:
  void SetUp() override {
    if (!plain_interpreter(15)) {
      GTEST_SKIP() << "no CPython 3.15 (scripts/pythons)";
    }
  }

  [[nodiscard]] std::string in_directory(const std::string& name) const {
    return directory_ / name;
  }
  [[nodiscard]] json stats() const {
    return json::parse(base::read_file(in_directory("stats.json")).value_or(""));
  }
  // Each line of TEXT must be an object. Returns "EVENT PID REASON" for each that has an event.
  static std::vector<std::string> events(const std::string& text) {
    std::vector<std::string> found;
    for (const auto line : base::split(base::trim(text), '\n')) {
      const auto object = json::parse(line);
      EXPECT_TRUE(object.contains("time") && object.contains("level")) << line;
      if (object.contains("event")) {
        const auto reason = object["reason"].is_null() ? "" : object["reason"].get<std::string>();
        found.push_back(object["event"].get<std::string>() + " " +
                        std::to_string(object["pid"].get<int>()) + " " + reason);
        EXPECT_THAT(object["duration_us"].get<int>(), Gt(0)) << line;
      }
    }
    return found;
  }

 private:
  TempDir directory_;
};

TEST_F(Figures, CountAndTimeTheStepsOfARecording) {
  ServedTree target{*plain_interpreter(15)};
  const auto recorded =
      run_tool({"record", "-p", target.pid(), "-o", in_directory("perf.data"), "--stats",
                in_directory("stats.json"), "--log-format", "json", "--", "true"});
  EXPECT_EQ(recorded.status, ExitStatus{}) << recorded.err;
  EXPECT_THAT(events(recorded.err),
              ElementsAre("detected " + target.pid() + " ", "activated " + target.pid() + " ",
                          "deactivated " + target.pid() + " "));
  const auto figures = stats();
  EXPECT_EQ(figures["verb"], "record");
  EXPECT_EQ(figures["exit_status"], 0);
  EXPECT_EQ(figures["counters"]["Activated"], 1);
  EXPECT_EQ(figures["counters"]["Deactivated"], 1);
  EXPECT_EQ(figures["reasons"], json::object());
  for (const auto* step : {"detection", "activation", "deactivation"}) {
    EXPECT_EQ(figures["durations_us"][step]["count"], 1) << step;
    EXPECT_THAT(figures["durations_us"][step]["longest"].get<int>(), Gt(0)) << step;
  }
}

TEST_F(Figures, CountARefusalWithItsReason) {
  const ChildProcess other{{"sleep", "60"}};
  const auto pid = std::to_string(other.pid().value());
  const auto refused = run_tool(
      {"activate", "-v", "-p", pid, "--stats", in_directory("stats.json"), "--log-format=json"});
  EXPECT_EQ(refused.status.code, 125);
  EXPECT_THAT(events(refused.err), ElementsAre("skipped " + pid + " not_python"));
  EXPECT_EQ(stats()["exit_status"], 125);
  EXPECT_EQ(stats()["counters"]["SkippedNotPython"], 1);
  EXPECT_EQ(stats()["reasons"], json::parse(R"({"not_python": 1})"));

  const auto usage = run_tool({"record", "--log-format", "json"});
  EXPECT_EQ(usage.status.code, 129);
  EXPECT_THAT(events(usage.err), ElementsAre());
}

}  // namespace
}  // namespace pyinject::test
