// tests/targets/counted_calls.py, a program that makes a requested number of calls, and the results
// of recording them.
#pragma once

#include "e2e/tracefs_use.hpp"
#include "pyinject/base/pid.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/python_process.hpp"
#include "support/temp_dir.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace pyinject::test {

// Runs PROGRAM in its own mount namespace, so that it is known whether tracefs is mounted. Adds no
// process: the pid of the command is that of PROGRAM.
[[nodiscard]] std::vector<std::string> beside(const std::string& mounts,
                                              const std::vector<std::string>& program);
[[nodiscard]] std::vector<std::string> with_tracefs(const std::vector<std::string>& program);

// The lines of uprobe_events that belong to the session of the process TOOL.
[[nodiscard]] std::vector<std::string> events_of(base::Pid tool);

// The program. WHAT names the function to call.
class Counted {
 public:
  explicit Counted(const Interpreter& python)
      : process_{python, target_source("counted_calls.py")} {}

  [[nodiscard]] std::string pid() const { return std::to_string(process_.pid().value()); }
  [[nodiscard]] base::Pid id() const { return process_.pid(); }
  void call(const std::string& what, int number);
  void expect_well();

 private:
  PythonProcess process_;
};

// The output of `functions --json` for DATA.
[[nodiscard]] nlohmann::json calls_in(const std::string& data);

// The functions of that name in programs that are run by -c.
[[nodiscard]] std::vector<nlohmann::json> named(const nlohmann::json& calls,
                                                const std::string& name);

// Expects one function of that name with COUNT calls, all of which returned.
void expect_calls(const nlohmann::json& calls, const std::string& name, int count);

class FunctionCalls : public testing::TestWithParam<Interpreter> {
 protected:
  void SetUp() override;
  [[nodiscard]] std::string data() const { return directory_ / "perf.data"; }
  [[nodiscard]] std::vector<std::string> arguments(const std::string& pids) const {
    return {"--functions", "-p", pids, "-o", data()};
  }
  void be_alone() { tracefs_.be_alone(); }

 private:
  TracefsUse tracefs_;
  TempDir directory_;
};

class FunctionCallsCounted : public FunctionCalls {
 protected:
  void SetUp() override;
};

}  // namespace pyinject::test
