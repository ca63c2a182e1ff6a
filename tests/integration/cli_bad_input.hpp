// The built tool with targets that it cannot record.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/record/plan.hpp"
#include "support/child_process.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/python_process.hpp"
#include "support/temp_dir.hpp"
#include "support/untouched.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

namespace pyinject::test {

[[nodiscard]] inline std::string say(base::Pid pid) { return std::to_string(pid.value()); }

class CliBadInput : public testing::Test {
 protected:
  void SetUp() override {
    if (interpreters().empty()) {
      GTEST_SKIP() << "no interpreter to record is here";
    }
  }
  [[nodiscard]] static Interpreter any() { return interpreters().front(); }
  [[nodiscard]] std::string data() const { return directory_ / "data"; }

  [[nodiscard]] std::vector<std::string> record_argv(base::Pid pid,
                                                     std::vector<std::string> options = {},
                                                     std::vector<std::string> command = {
                                                         "true"}) const {
    std::vector<std::string> argv{tool(), "record", "-p", say(pid), "-o", data()};
    argv.insert(argv.end(), options.begin(), options.end());
    argv.emplace_back("--");
    argv.insert(argv.end(), command.begin(), command.end());
    return argv;
  }
  [[nodiscard]] bool nothing_recorded() const {
    return std::filesystem::is_empty(directory_.path());
  }

  void expect_failure(const RunResult& result, std::initializer_list<std::string> parts) const {
    EXPECT_EQ(result.status, (ExitStatus{.code = record::kFailure}));
    EXPECT_THAT(result.err, testing::HasSubstr("perf-pyinject: error: "));
    for (const auto& part : parts) {
      EXPECT_THAT(result.err, testing::HasSubstr(part));
    }
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(nothing_recorded());
  }
  // REASON: its stable name in messages. PARTS: substrings of the finding and the remedy.
  void expect_refused(base::Pid pid, const std::string& reason,
                      std::initializer_list<std::string> parts) const {
    const auto result = run(record_argv(pid));
    expect_failure(result, parts);
    EXPECT_THAT(result.err,
                testing::ContainsRegex("error: pid " + say(pid) + ": .*\\(" + reason + "\\)"));
  }
  void expect_refused_unharmed(base::Pid pid, const std::string& reason,
                               std::initializer_list<std::string> parts) const {
    const Untouched before{pid};
    expect_refused(pid, reason, parts);
    EXPECT_THAT(before.differences(), testing::IsEmpty());
  }

  TempDir directory_;
};

// A program that works continuously and answers requests.
inline constexpr auto kAnswers = R"(
import sys, threading
def work():
    while True:
        sum(i for i in range(1000))
threading.Thread(target=work, daemon=True).start()
print('ready', flush=True)
for line in sys.stdin:
    print(line.strip(), sys.is_stack_trampoline_active(), flush=True)
)";

// The program still works, and no trampoline is on.
inline void expect_as_before(PythonProcess& python) {
  python.send_line("alive");
  EXPECT_EQ(python.read_line(), "alive False");
}

}  // namespace pyinject::test
