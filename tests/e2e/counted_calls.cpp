#include "e2e/counted_calls.hpp"

#include "e2e/served_tree.hpp"
#include "pyinject/base/deadline.hpp"
#include "support/child_process.hpp"
#include "support/patience.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sstream>

#include <unistd.h>

namespace pyinject::test {
namespace {

using nlohmann::json;

}  // namespace

std::vector<std::string> beside(const std::string& mounts,
                                const std::vector<std::string>& program) {
  std::vector<std::string> words{"unshare", "-m", "sh", "-c", mounts + "; exec \"$@\"", "sh"};
  words.insert(words.end(), program.begin(), program.end());
  return words;
}
std::vector<std::string> with_tracefs(const std::vector<std::string>& program) {
  return beside("mount -t tracefs nodev /sys/kernel/tracing", program);
}

std::vector<std::string> events_of(base::Pid tool) {
  const auto listed = run(with_tracefs({"cat", "/sys/kernel/tracing/uprobe_events"}));
  EXPECT_EQ(listed.status, ExitStatus{}) << listed.err;
  std::vector<std::string> found;
  std::istringstream lines{listed.out};
  const auto group = ":perf_pyinject_" + std::to_string(tool.value()) + "_";
  for (std::string line; std::getline(lines, line);) {
    if (line.find(group) != std::string::npos) {
      found.push_back(line);
    }
  }
  return found;
}

void Counted::call(const std::string& what, int number) {
  process_.send_line(what + " " + std::to_string(number));
  EXPECT_EQ(process_.read_line(kPatience), "done");
}

void Counted::expect_well() {
  call("leaves", 10);
  process_.child().close_stdin();
  EXPECT_EQ(process_.child().wait(base::Deadline::after(kPatience)), ExitStatus{});
}

json calls_in(const std::string& data) {
  const auto result = run_tool({"functions", "-i", data, "--json"});
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  return json::parse(result.out);
}

std::vector<json> named(const json& calls, const std::string& name) {
  std::vector<json> found;
  for (const auto& function : calls.at("functions")) {
    if (function.at("function") == name && function.at("file") == "<string>") {
      found.push_back(function);
    }
  }
  return found;
}

void expect_calls(const json& calls, const std::string& name, int count) {
  const auto found = named(calls, name);
  ASSERT_EQ(found.size(), 1U) << name;
  EXPECT_EQ(found[0].at("calls"), count) << name;
  EXPECT_EQ(found[0].at("returned"), count) << name;
}

void FunctionCalls::SetUp() {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root: mount namespaces, tracefs";
  }
}

void FunctionCallsCounted::SetUp() {
  FunctionCalls::SetUp();
  if (!IsSkipped() &&
      run(with_tracefs({"test", "-w", "/sys/kernel/tracing/uprobe_events"})).status !=
          ExitStatus{}) {
    GTEST_SKIP() << "needs tracefs and uprobe events: not in this container or kernel";
  }
}

}  // namespace pyinject::test
