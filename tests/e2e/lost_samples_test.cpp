// The report of a recording whose perf was too slow for its events.
#include "support/child_process.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/python_process.hpp"
#include "support/temp_dir.hpp"
#include "support/until_worked.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::test {
namespace {

using testing::ContainsRegex;

// Some hundred thousand page faults per second.
constexpr const char* kTouchesPages = R"(
import mmap
def touch():
    with mmap.mmap(-1, 1 << 20) as memory:
        for page in range(0, 1 << 20, 4096):
            memory[page] = 1
print('ready', flush=True)
while True:
    touch()
)";

class LostSamples : public testing::TestWithParam<Interpreter> {
 protected:
  std::string messages_of(const std::vector<std::string>& options) {
    const auto pid = target_.pid();
    std::vector<std::string> arguments{
        tool(), "record", "-p", std::to_string(pid.value()), "-o", directory_ / "data"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.emplace_back("--");
    const auto command = until_worked(pid, std::chrono::milliseconds{300});
    arguments.insert(arguments.end(), command.begin(), command.end());
    const auto recorded = run(arguments);
    EXPECT_EQ(recorded.status, ExitStatus{}) << recorded.err;
    return recorded.err;
  }
  // perf's own count in the file that it wrote.
  [[nodiscard]] double count_by_perf() const {
    const auto report = run({"perf", "report", "--stdio", "-i", directory_ / "data.raw"});
    constexpr std::string_view kBefore = "# Total Lost Samples: ";
    const auto at = report.out.find(kBefore);
    if (at == std::string::npos) {
      ADD_FAILURE() << report.out.substr(0, 1000);
      return 0;
    }
    return std::stod(report.out.substr(at + kBefore.size()));
  }

  TempDir directory_;
  PythonProcess target_{GetParam(), kTouchesPages};
};

TEST_P(LostSamples, AreAShareAndTheAdviceIsOfThePeriod) {
  // With stack copies, no sample fits into a buffer of one page.
  EXPECT_THAT(
      messages_of({"-e", "minor-faults", "-c", "1", "-m", "1", "--call-graph", "dwarf,16384"}),
      ContainsRegex(
          "perf lost [0-9]+,[0-9,]+ records, up to 100.0 % of the samples: a larger -c or "
          "a larger -m helps\n"));
}

TEST_P(LostSamples, AreAShareAndTheAdviceIsOfTheFrequency) {
  EXPECT_THAT(
      messages_of({"-e", "cpu-clock", "-F", "9999", "-m", "1", "--call-graph", "dwarf,16384"}),
      ContainsRegex(
          "perf lost [0-9,]+ records, up to 100.0 % of the samples: a lower -F or a larger "
          "-m helps\n"));
}

TEST_P(LostSamples, AreAsManyAsPerfSays) {
  const auto said =
      messages_of({"-e", "minor-faults", "-c", "1", "-m", "1", "--call-graph", "fp", "--keep-raw"});
  std::smatch found;
  ASSERT_TRUE(std::regex_search(said, found, std::regex{"perf lost ([0-9,]+) records"})) << said;
  auto count = found[1].str();
  std::erase(count, ',');
  // perf's count is per event and includes lost records of other kinds.
  const auto by_perf = count_by_perf();
  EXPECT_NEAR(std::stod(count), by_perf, 10 + by_perf / 100);
}

INSTANTIATE_TEST_SUITE_P(Pythons, LostSamples, testing::ValuesIn(interpreters()),
                         InterpreterName{});

}  // namespace
}  // namespace pyinject::test
