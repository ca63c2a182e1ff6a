// Waits within greenlets are those of the greenlet, not of the functions that switched to it.
#include "base/text.hpp"
#include "e2e/bpf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "support/child_process.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/python_process.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace pyinject::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

struct GreenletWaitsRow {
  int minor = 0;
  std::string engine;
};

// NOLINTNEXTLINE(readability-identifier-naming): the name that GoogleTest looks for
void PrintTo(const GreenletWaitsRow& row, std::ostream* stream) {
  *stream << "3." << row.minor << " " << row.engine;
}

class GreenletWaits : public testing::TestWithParam<GreenletWaitsRow> {
 protected:
  void SetUp() override {
    if (const auto lacks = bpf_engine_lacks(); GetParam().engine == "bpf" && !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
  }
  // Records the waits of PROGRAM, which works between a line that it reads and "done".
  void record(const std::string& module, const std::string& program) {
    const auto python = find_interpreter({.minor = GetParam().minor, .module = module});
    if (!python) {
      GTEST_SKIP() << "no CPython 3." << GetParam().minor << " with " << module
                   << " (scripts/pythons)";
    }
    PythonProcess target{*python, program};
    RunningRecord running{{"--engine", GetParam().engine, "-e", "cpu-clock", "--off-cpu", "-o",
                           data(), "-p", std::to_string(target.pid().value())}};
    target.send_line("go");
    EXPECT_EQ(target.read_line(), "done");
    EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
    messages_ = running.child().err();
  }
  [[nodiscard]] json report(std::vector<std::string> words) const {
    words.insert(words.begin(), {tool(), "report", "--json"});
    words.push_back(data());
    const auto result = run(words);
    EXPECT_EQ(result.status, ExitStatus{}) << result.err;
    return json::parse(result.out);
  }
  // Nanoseconds by the rows of `report --view tasks`.
  [[nodiscard]] std::map<std::string, double> waits_of_tasks() const {
    std::map<std::string, double> waits;
    const auto reported = report({"--view", "tasks"});
    for (const auto& table : reported.at("tables")) {
      if (table.at("unit") == "ns") {
        for (const auto& row : table.at("rows")) {
          waits[row.at("name")] = row.at("self");
        }
      }
    }
    return waits;
  }
  [[nodiscard]] std::string data() const { return directory_ / "data"; }
  [[nodiscard]] const std::string& messages() const { return messages_; }

 private:
  TempDir directory_;
  std::string messages_;
};

// The waits of a greenlet that its program tells.
constexpr auto kWaitsOfGreenlets = R"(
import socket, sys, time, greenlet
def waits_a():
    time.sleep(0.03)
def root_a():
    while True:
        waits_a()
        hub.switch()
def waits_b(value):
    one.settimeout(0.01)
    try:
        one.recv(1)
    except TimeoutError:
        pass
    hub.switch()
def root_b():
    while True:
        sorted([1], key=waits_b)
def waits_main():
    time.sleep(0.02)
def run():
    for _ in range(20):
        a.switch()
        b.switch()
        waits_main()
hub = greenlet.getcurrent()
one, other = socket.socketpair()
print('ready', flush=True)
sys.stdin.readline()
a, b = greenlet.greenlet(root_a), greenlet.greenlet(root_b)
run()
print('done', flush=True)
sys.stdin.readline()
)";

TEST_P(GreenletWaits, AreMarkedAndNamed) {
  record("greenlet", kWaitsOfGreenlets);
  if (IsSkipped()) {
    return;
  }
  const std::map<std::string, std::string> roots{
      {"waits_a", "root_a"}, {"waits_b", "root_b"}, {"waits_main", "run"}};
  std::map<std::string, std::size_t> count;
  std::map<std::string, double> spent;  // with this root
  std::set<std::string> suspended;
  const auto exported = run({tool(), "export", "-f", "jsonl", data()});
  for (const auto line : base::split(exported.out, '\n')) {
    const auto sample = line.empty() ? json{} : json::parse(line);
    if (line.empty() || sample.at("event") != "context-switches") {
      continue;
    }
    std::set<std::string> python;
    std::set<std::string> marks;
    for (const auto& frame : sample.at("stack")) {
      if (frame.at("kind") == "python") {
        python.insert(frame.at("function"));
      } else if (frame.at("kind") == "suspended") {
        suspended.insert(frame.at("function"));
      } else if (frame.at("kind") == "mark") {
        marks.insert(frame.at("function"));
      }
    }
    // Preempted there: it is not known whose the functions are.
    if (marks.contains("[greenlet switch]")) {
      continue;
    }
    for (const auto& [waits, root] : roots) {
      if (python.contains(root)) {
        spent[root] += sample.at("period").get<double>();
      }
      if (!python.contains(waits)) {
        continue;
      }
      ++count[waits];
      EXPECT_TRUE(python.contains(root)) << line;
      EXPECT_EQ(marks.contains("[greenlet]"), waits != "waits_main") << line;
      for (const auto& [other, of_other] : roots) {
        EXPECT_FALSE(other != waits && (python.contains(other) || python.contains(of_other)))
            << line;
      }
    }
  }
  for (const auto& [waits, root] : roots) {
    EXPECT_GE(count[waits], 20U) << messages();
  }
  EXPECT_EQ(suspended, GetParam().engine == "bpf" ? (std::set<std::string>{"<module>", "run"})
                                                  : std::set<std::string>{});
  const auto tasks = waits_of_tasks();
  EXPECT_DOUBLE_EQ(tasks.at("[greenlet] root_a"), spent["root_a"]);
  EXPECT_DOUBLE_EQ(tasks.at("[greenlet] root_b"), spent["root_b"]);
  EXPECT_EQ(tasks.size(), 2U + tasks.count("[greenlet]")) << "preempted before it runs Python";
  const auto of_a = report({"--view", "waits", "--task", "[greenlet] root_a"});
  EXPECT_THAT(of_a.dump(), HasSubstr("waits_a"));
  EXPECT_THAT(of_a.dump(), Not(HasSubstr("waits_main")));
}

// gevent waits in its hub, which is a greenlet, and computes and blocks in others.
constexpr auto kGeventServer = R"(
import sys, time, gevent, gevent.socket
from gevent.server import StreamServer
def blocks(): time.sleep(0.01)
def serve(socket, address):
    while socket.recv(1):
        blocks()
        socket.sendall(b'x')
server = StreamServer(('127.0.0.1', 0), serve)
server.start()
def ask():
    with gevent.socket.create_connection(('127.0.0.1', server.server_port)) as connection:
        for _ in range(30):
            gevent.sleep(0.005)
            connection.sendall(b'x')
            connection.recv(1)
print('ready', flush=True)
sys.stdin.readline()
gevent.joinall([gevent.spawn(ask)])
print('done', flush=True)
sys.stdin.readline()
)";

TEST_P(GreenletWaits, BelongToTheFunctionsOfAServer) {
  record("gevent", kGeventServer);
  if (IsSkipped()) {
    return;
  }
  const auto tasks = waits_of_tasks();
  EXPECT_GE(tasks.at("[greenlet] serve"), 30 * 0.01e9) << messages();
  EXPECT_GE(tasks.at("[greenlet] Hub.run"), 10 * 0.005e9) << messages();
}

std::vector<GreenletWaitsRow> greenlet_waits_rows() {
  std::vector<GreenletWaitsRow> all;
  for (const int minor : {13, 14, 15}) {
    for (const auto* const engine : {"bpf", "trampoline"}) {
      all.push_back({.minor = minor, .engine = engine});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Rows, GreenletWaits, testing::ValuesIn(greenlet_waits_rows()),
                         [](const testing::TestParamInfo<GreenletWaitsRow>& each) {
                           return fmt::format("py3_{}_{}", each.param.minor, each.param.engine);
                         });

}  // namespace
}  // namespace pyinject::test
