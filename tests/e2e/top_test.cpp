// `top`: shares of functions, compared with what the program itself measures, and what a user sees
// on terminals of several sizes.
#include "base/text.hpp"
#include "e2e/bpf_recording.hpp"
#include "procfs/stat.hpp"
#include "support/bpf_engine.hpp"
#include "support/child_process.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/python_process.hpp"
#include "support/statistics.hpp"
#include "support/temp_dir.hpp"
#include "support/tmux_terminal.hpp"
#include "support/until_worked.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poll.h>
#include <unistd.h>

namespace pyinject::test {
namespace {

using base::Deadline;
using nlohmann::json;
using std::string_literals::operator""s;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

// Spends its processor time in known shares.
constexpr const char* kShares = R"(
import time
def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
def most():
    burn(0.006)
def some():
    burn(0.003)
def least():
    burn(0.001)
def main():
    print('ready', flush=True)
    while True:
        most()
        some()
        least()
main()
)";

std::string pid_of(const PythonProcess& python) { return std::to_string(python.pid().value()); }

class Top : public testing::TestWithParam<Build> {
 protected:
  void SetUp() override {
    if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
    const auto found = find_build(GetParam());
    if (!found) {
      GTEST_SKIP() << "not installed, or without a JIT (scripts/pythons)";
    }
    python_ = *found;
  }
  [[nodiscard]] PythonProcess start() const {
    PythonOptions options;
    options.child = environment_of(GetParam());
    return PythonProcess{python_, kShares, options};
  }
  // Samples PYTHON until it has WORKED, however long that takes. OUTPUT: the file of -o; empty:
  // none.
  static json sample(const PythonProcess& python,
                     std::chrono::seconds worked = std::chrono::seconds{2},
                     const std::string& output = {}) {
    return table_of(python, {}, worked, output, [](const ChildProcess& top) {
      const BpfTimeCount program{top.pid()};
      const auto deadline = Deadline::after(kPatience);
      while (program.time() == std::chrono::nanoseconds{} && !deadline.expired()) {
        ::poll(nullptr, 0, 10);  // leaves the processor to the tool that starts
      }
    });
  }
  // The same without BPF, when nothing shows that the tool has begun to read.
  static json read_from_outside(const PythonProcess& python, std::chrono::seconds worked) {
    return table_of(python, {"setpriv", "--bounding-set=-bpf,-perfmon,-sys_admin"}, worked, {},
                    [](const ChildProcess& /*top*/) {});
  }

 private:
  // PREFIX: a command that starts the tool.
  static json table_of(const PythonProcess& python, std::vector<std::string> prefix,
                       std::chrono::seconds worked, const std::string& output,
                       const std::function<void(const ChildProcess&)>& await_begin) {
    for (const auto& word :
         {tool(), "top"s, "--once"s, "--json"s, "-F"s, "4999"s, "-d"s, "3600"s, "-p"s}) {
      prefix.push_back(word);
    }
    prefix.push_back(pid_of(python));
    if (!output.empty()) {
      prefix.insert(prefix.end(), {"-o", output});
    }
    ChildProcess top{prefix};
    await_begin(top);
    EXPECT_EQ(run(until_worked(python.pid(), worked)).status, ExitStatus{});
    top.signal(SIGINT);
    EXPECT_EQ(top.wait(Deadline::after(kPatience)), (ExitStatus{.code = 128 + SIGINT}))
        << top.err();
    auto table = json::parse(top.out());
    EXPECT_GT(table.at("samples"), 1000) << top.err();
    return table;
  }

 protected:
  Interpreter python_;
};

// Compares the shares of most(), some() and least() with those of the program. SAMPLES: how many
// independent ones the times in TABLE are worth.
void expect_shares(const json& table, double samples, double bias) {
  std::map<std::string, double> totals;
  for (const auto& row : table.at("functions")) {
    totals[row.at("name")] = row.at("total_seconds");
  }
  for (const auto& [name, share] : {std::pair{"most", 0.6}, {"some", 0.3}, {"least", 0.1}}) {
    const auto count = std::llround(samples * totals[name] / totals["main"]);
    EXPECT_TRUE(share_is_near(
        {.count = static_cast<std::size_t>(count), .all = static_cast<std::size_t>(samples)}, share,
        bias))
        << name;
  }
  EXPECT_EQ(table.at("functions").at(0).at("name"), "burn");
  EXPECT_EQ(table.at("threads").size(), 1U);
}
INSTANTIATE_TEST_SUITE_P(Builds, Top, testing::ValuesIn(builds_without_jit()), BuildName{});

TEST_P(Top, HasTheSharesOfAKnownProgram) {
  auto python = start();
  const auto table = sample(python);
  expect_shares(table, table.at("samples"), 0.01);
  EXPECT_EQ(table.at("lost"), 0);
}

TEST_P(Top, WritesTheSamplesThatItShows) {
  const TempDir directory;
  const auto file = directory.path() / "top.jsonl";
  auto python = start();
  const auto table = sample(python, std::chrono::seconds{1}, file);
  std::map<std::string, std::uint64_t> samples;  // by function, each counted once
  std::uint64_t all = 0;
  std::ifstream written{file};
  for (std::string line; std::getline(written, line);) {
    const auto sample = json::parse(line);
    if (sample.at("event") != "cpu-clock") {
      continue;
    }
    EXPECT_EQ(sample.at("period"), 1'000'000'000 / 4999);
    std::set<std::string> functions;
    for (const auto& frame : sample.at("stack")) {
      functions.insert(frame.at("function"));
    }
    for (const auto& name : functions) {
      ++samples[name];
    }
    ++all;
  }
  EXPECT_EQ(all, table.at("samples"));
  for (const auto& row : table.at("functions")) {
    const auto period = 1.0 / 4999;
    EXPECT_NEAR(row.at("total_seconds").get<double>(),
                static_cast<double>(samples[row.at("name")]) * period, period / 2)
        << row;
  }
}

// Two threads sleep, one works, and one waits for each of a lock, a queue, a server and a client.
TEST_P(Top, ShowsWhereThreadsWait) {
  constexpr const char* kWaits = R"(
import queue, socket, threading, time
lock = threading.Lock()
lock.acquire()
def rests():
    time.sleep(3600)
def locks():
    lock.acquire()
def takes():
    queue.Queue().get()
def receives():
    connections[0].recv(1)
def answers():
    server.accept()[0].recv(1)
server = socket.create_server(('127.0.0.1', 0))
connections = [socket.create_connection(server.getsockname())]
for function in (locks, takes, receives, answers):
    threading.Thread(target=function, daemon=True).start()
def works():
    print('ready', flush=True)
    while True:
        pass
for _ in range(2):
    threading.Thread(target=rests, daemon=True).start()
works()
)";
  PythonOptions options;
  options.child = environment_of(GetParam());
  PythonProcess python{python_, kWaits, options};
  const auto table = sample(python);
  std::map<std::string, double> waits;
  for (const auto& row : table.at("functions")) {
    waits[row.at("name")] += row.at("wait").get<double>();
  }
  EXPECT_NEAR(waits["rests"], 2, 0.2) << table;
  const auto waits_for = [&table](const std::string& function, const std::string& use) {
    for (const auto& row : table.at("functions")) {
      if (row.at("name") == function) {
        return row.at("waits").value(use, 0.0) / row.at("wait").get<double>();
      }
    }
    return 0.0;
  };
  EXPECT_GT(waits_for("rests", "sleep"), 0.5) << table;
  EXPECT_GT(waits_for("locks", "lock"), 0.5) << table;
  EXPECT_GT(waits_for("Condition.wait", "thread"), 0.5) << table;  // of the queue
  EXPECT_GT(waits_for("receives", "network"), 0.5) << table;
  EXPECT_GT(waits_for("answers", "client"), 0.5) << table;
  EXPECT_LT(waits["works"], 0.2);
  std::map<std::string, double> lines;
  for (const auto& row : table.at("lines")) {
    lines[fmt::format("{}:{}", row.at("name").get<std::string>(), row.at("line").get<int>())] =
        row.at("wait").get<double>();
  }
  EXPECT_NEAR(lines["rests:6"], 2, 0.2);
}

TEST_P(Top, NamesTheCFunctionsThatPythonCalled) {
  constexpr const char* kCompresses = R"(
import zlib
data = bytes(range(256)) * 4096
print('ready', flush=True)
while True:
    zlib.compress(data, 9)
)";
  PythonOptions options;
  options.child = environment_of(GetParam());
  PythonProcess python{python_, kCompresses, options};
  const auto table = sample(python, std::chrono::seconds{1});
  double all = 0;
  double compresses = 0;
  for (const auto& row : table.at("c_functions")) {
    all += row.at("self_seconds").get<double>();
    if (row.at("name").get<std::string>().find("libz.so") != std::string::npos) {
      compresses += row.at("self_seconds").get<double>();
    }
  }
  EXPECT_GT(compresses, 0.9 * all) << table;
  EXPECT_NEAR(all, table.at("uses").at("c").get<double>() * table.at("seconds").get<double>(), 0.01)
      << table;
}

// Without BPF, the stacks are read from outside: less often, so the shares are less exact.
TEST_P(Top, ReadsFromOutsideWithoutBpf) {
  auto python = start();
  const auto table = read_from_outside(python, std::chrono::seconds{4});
  EXPECT_EQ(table.at("source"), "reading");
  EXPECT_FALSE(table.contains("c_functions")) << "unknown is not none";
  // Some 300 times a second; each stands for the time since the one before, which varies.
  expect_shares(table, 600, 0.02);
  EXPECT_GT(table.at("gil"), 0.9 * table.at("cpu").get<double>());
  python.expect_alive();
}

// Works for two milliseconds of processor time, then sleeps: when it is woken up, it is runnable
// but still in the function that sleeps.
constexpr auto kTurns = R"(
import time
def work(end):
    while time.thread_time_ns() < end:
        pass
def main():
    print('ready', flush=True)
    while True:
        work(time.thread_time_ns() + 2_000_000)
        time.sleep(0.003)
main()
)";

TEST_P(Top, GivesNoTimeToAFunctionThatSleepsWithoutBpf) {
  PythonOptions options;
  options.child = environment_of(GetParam());
  PythonProcess python{python_, kTurns, options};
  const auto table = read_from_outside(python, std::chrono::seconds{2});
  std::map<std::string, double> own;
  for (const auto& row : table.at("functions")) {
    own[row.at("name")] = row.at("self_seconds");
  }
  EXPECT_GT(own["work"], 1);
  EXPECT_LT(own["main"], 0.05 * own["work"]) << table;
}

TEST(TopOfFreeThreaded, ShowsNoSharesOfAGil) {
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
    GTEST_SKIP() << lacks;
  }
  const auto found =
      find_interpreter({.free_threaded = true, .only_read = true, .whole_matrix = true});
  if (!found) {
    GTEST_SKIP() << "no free-threaded interpreter";
  }
  const PythonProcess python{*found, kShares};
  const auto top = run({tool(), "top", "--once", "--json", "-d", "1", "-p", pid_of(python)});
  ASSERT_EQ(top.status, ExitStatus{}) << top.err;
  const auto table = json::parse(top.out);
  EXPECT_TRUE(table.at("gil").is_null()) << table;
  EXPECT_FALSE(table.at("functions").empty()) << table;
  for (const auto& row : table.at("functions")) {
    EXPECT_TRUE(row.at("gil").is_null()) << row;
  }
}

// Two threads: the first holds the GIL for four fifths of its time, the second for one fifth.
TEST_P(Top, ShowsHowMuchOfItsTimeAThreadHoldsTheGil) {
  PythonOptions options;
  options.child = environment_of(GetParam());
  PythonProcess python{python_, target_source("gil_shares.py"), options};
  python.send_line("100000");
  const auto table = sample(python, std::chrono::seconds{6});
  const auto samples = table.at("samples").get<double>() / 2;  // of each
  std::vector<double> held;
  for (const auto& row : table.at("threads")) {
    if (row.at("self_seconds") > 0.2) {
      held.push_back(row.at("gil").get<double>() / row.at("self").get<double>());
    }
  }
  std::ranges::sort(held);
  ASSERT_EQ(held.size(), 2U) << table;
  // Each works for some 3 s in turns of 0.1 s, of which the first and the last one may be cut.
  constexpr double kOfTheTurns = 0.03;
  for (std::size_t i = 0; i < held.size(); ++i) {
    const auto count = std::llround(samples * held[i]);
    EXPECT_TRUE(share_is_near(
        {.count = static_cast<std::size_t>(count), .all = static_cast<std::size_t>(samples)},
        i == 0 ? 0.2 : 0.8, kOfTheTurns))
        << table;
  }
}

// Three tasks in turns; two of them have equal work.
TEST_P(Top, HasTheSharesOfTasks) {
  if (GetParam().minor < 14) {
    GTEST_SKIP() << "names of tasks can be read on 3.14 and later";
  }
  PythonOptions options;
  options.child = environment_of(GetParam());
  PythonProcess python{python_, target_source("named_tasks.py"), options};
  python.send_line("100000");
  const auto table = sample(python);
  std::map<std::string, double> spent;
  for (const auto& task : table.at("tasks")) {
    spent[task.at("name")] = task.at("total_seconds");
    EXPECT_EQ(task.at("pid"), python.pid().value());
  }
  // Task-1 also reads the clock.
  ASSERT_EQ(spent.size(), 3U) << table;
  const auto all = spent["crunch: α"] + spent["Task-2"] + spent["Task-1"];
  const auto part = [&](double some, double of) {
    const auto samples = table.at("samples").get<double>() * of / all;
    return Part{.count = static_cast<std::size_t>(std::llround(samples * some / of)),
                .all = static_cast<std::size_t>(std::llround(samples))};
  };
  // They have thousands of turns, whose lengths are random: their sums differ by some percent.
  constexpr double kOfTheTurns = 0.02;
  EXPECT_TRUE(share_is_near(part(spent["crunch: α"], all - spent["Task-1"]), 0.5, kOfTheTurns));
  EXPECT_TRUE(share_is_at_least(part(spent["Task-1"], all), 1.0 / 3 - kOfTheTurns));
}

// Greenlets that burn time in turns with the thread itself; one starts others all the time.
TEST_P(Top, HasTheSharesOfGreenlets) {
  const auto found = find_interpreter({.minor = GetParam().minor, .module = "greenlet"});
  if (!found) {
    GTEST_SKIP() << "no CPython 3." << GetParam().minor << " with greenlet (scripts/pythons)";
  }
  PythonOptions options;
  options.child = environment_of(GetParam());
  PythonProcess python{*found, target_source("greenlets.py"), options};
  const auto table = sample(python);
  std::map<std::string, double> functions;
  for (const auto& row : table.at("functions")) {
    functions[row.at("name")] = row.at("total_seconds");
  }
  std::map<std::string, double> greenlets;
  double all = 0;
  for (const auto& row : table.at("tasks")) {
    EXPECT_EQ(row.at("kind"), "greenlet");
    EXPECT_EQ(row.at("pid"), python.pid().value());
    greenlets[row.at("name")] = row.at("total_seconds");
    all += row.at("total_seconds").get<double>();
  }
  // Except in switches, which take some microseconds between turns of some hundred.
  for (const std::string root : {"root_a", "root_b", "root_c"}) {
    const auto spent = greenlets["[greenlet] " + root];
    EXPECT_GT(functions[root], 0.05) << table;
    EXPECT_LE(spent, functions[root] + 1e-9);
    EXPECT_GE(spent, 0.9 * functions[root]) << table;
  }
  // A greenlet that starts or ends runs no Python function.
  const auto unnamed = greenlets["[greenlet]"];
  greenlets.erase("[greenlet]");
  greenlets.erase("[greenlet] root_starter");
  EXPECT_EQ(greenlets.size(), 3U) << table;
  EXPECT_GT(functions["burn_main"], 0.05) << "the thread itself";
  EXPECT_LE(all - unnamed, functions["root_a"] + functions["root_b"] + functions["root_c"] +
                               functions["root_starter"] + 1e-9);
}

class TopOfOne : public Top {
 protected:
  void SetUp() override {
    Top::SetUp();
    if (!IsSkipped()) {
      if (const auto lacks = tmux_lacks(); !lacks.empty()) {
        GTEST_SKIP() << lacks;
      }
    }
  }
  // Afterwards the terminal shows its exit status, the terminal's modes and the line "done".
  static std::string command(const std::string& options) {
    return "trap : INT; " + tool() + " top -F 999 " + options +
           "; echo status=$?; stty -a | tr ' ;' '\\n\\n' | grep -xe '-*icanon' -e '-*echo' "
           "-e '-*icrnl'; echo done; exec cat";
  }
  [[nodiscard]] static std::string of(const PythonProcess& python) {
    return command("-p " + pid_of(python));
  }
};
INSTANTIATE_TEST_SUITE_P(Builds, TopOfOne, testing::Values(Build{.minor = 13}), BuildName{});

std::vector<std::string> lines_of(const std::string& screen) {
  std::vector<std::string> lines;
  for (const auto line : base::split(screen, '\n')) {
    lines.emplace_back(line);
  }
  if (!lines.empty() && lines.back().empty()) {
    lines.pop_back();
  }
  return lines;
}

std::optional<long> samples_on(const std::string& screen) {
  std::smatch match;
  return std::regex_search(screen, match, std::regex{R"((\d+) samples?)"})
             ? std::optional{std::stol(match[1])}
             : std::nullopt;
}

bool has(const std::string& screen, std::string_view text) {
  return screen.find(text) != std::string::npos;
}

TEST_P(TopOfOne, FitsTheTerminal) {
  struct Shape {
    TerminalSize size;
    std::string heading;
  };
  auto python = start();
  for (const auto& shape :
       {Shape{{.columns = 80, .rows = 24}, "*SELF%  TOTAL%  WAIT% MOSTLY  FUNCTION"},
        Shape{{.columns = 120, .rows = 40},
              "*SELF%  TOTAL%  SELF s  TOTAL s  GIL%  WAIT% MOSTLY  TREND      FUNCTION"},
        Shape{{.columns = 200, .rows = 60},
              "*SELF%  TOTAL%  SELF s  TOTAL s  GIL%  WAIT% MOSTLY  TREND      FUNCTION"},
        Shape{{.columns = 40, .rows = 10}, "*SELF%  TOTAL% FUNCTION"}}) {
    TmuxTerminal terminal{of(python), shape.size};
    ASSERT_TRUE(terminal.shows([](const std::string& now) {
      return has(now, " burn  <string>:3") && has(now, " least  <string>:11") &&
             has(lines_of(now).back(), "q quit");
    })) << terminal.screen();
    auto lines = lines_of(terminal.screen());
    ASSERT_EQ(lines.size(), static_cast<std::size_t>(shape.size.rows));
    if (shape.size.rows >= 24) {
      EXPECT_THAT(lines[2], MatchesRegex("CPU [0-9.]+%: python [0-9.]+%  c .*  kernel [0-9.]+%"));
      lines.erase(lines.begin() + 2);
    }
    EXPECT_THAT(lines[0], HasSubstr("(pid " + pid_of(python) + ")  CPU "));
    EXPECT_THAT(lines[1], HasSubstr("[f functions]"));
    EXPECT_EQ(lines[2], shape.heading);
    EXPECT_THAT(lines[3], HasSubstr("burn"));
    EXPECT_THAT(lines.back(), HasSubstr("q quit  h help"));
    if (shape.size.columns >= 80) {
      EXPECT_THAT(lines[3],
                  MatchesRegex(" *[0-9.]+ +[0-9.]+ .* (python|c|kernel) .*burn  <string>:3"));
    }
    if (shape.size.columns >= 120) {
      const auto blocks = [](const std::string& now) {
        return std::regex_search(now, std::regex{"(▁|▂|▃|▄|▅|▆|▇|█) burn  <string>:3"});
      };
      EXPECT_TRUE(terminal.shows(blocks)) << terminal.screen();
    }
    terminal.resize({.columns = 60, .rows = 12});
    EXPECT_TRUE(terminal.shows([](const std::string& now) {
      return has(now, "*SELF%  TOTAL% FUNCTION") && has(lines_of(now).back(), "q quit");
    })) << terminal.screen();
    terminal.type("q");
    EXPECT_TRUE(terminal.shows("status=0")) << terminal.screen();
  }
  python.expect_alive();
}

TEST_P(TopOfOne, SortsFiltersAndShowsStacks) {
  auto python = start();
  TmuxTerminal terminal{of(python)};
  ASSERT_TRUE(terminal.shows("least")) << terminal.screen();
  terminal.type("l");
  EXPECT_TRUE(terminal.shows("LINE")) << terminal.screen();
  terminal.type("t");
  EXPECT_TRUE(terminal.shows(pid_of(python) + " " + procfs::read_stat(python.pid())->name))
      << terminal.screen();
  terminal.type("c");
  EXPECT_TRUE(terminal.shows("C FUNCTION")) << terminal.screen();
  terminal.type("P");
  EXPECT_TRUE(terminal.shows("PROCESS")) << terminal.screen();
  terminal.type("f2");
  EXPECT_TRUE(terminal.shows(" SELF% *TOTAL%")) << terminal.screen();
  terminal.type("/so");
  terminal.press("Enter");
  EXPECT_TRUE(terminal.shows([](const std::string& now) {
    return has(now, "only 'so'") && has(now, " some  ") && !has(now, " most  ");
  })) << terminal.screen();
  terminal.press("Enter");
  const std::regex stack{
      R"(innermost function first\n  burn  <string>:[456]\n  some  <string>:10\n  main  <string>:17\n)"};
  EXPECT_TRUE(terminal.shows([&](const std::string& now) { return std::regex_search(now, stack); }))
      << terminal.screen();
  terminal.press("Escape");
  EXPECT_TRUE(terminal.shows(" most  ")) << terminal.screen();
  terminal.press("Down");
  terminal.press("Enter");
  EXPECT_TRUE(terminal.shows("innermost function first")) << terminal.screen();
  terminal.type("h");
  EXPECT_TRUE(terminal.shows("start again from zero")) << terminal.screen();
}

TEST_P(TopOfOne, PausesTheDisplayAndResetsTheCounts) {
  auto python = start();
  TmuxTerminal terminal{of(python)};
  const auto samples = [](long least, long most) {
    return [=](const std::string& now) {
      const auto count = samples_on(now);
      return count && *count >= least && *count <= most;
    };
  };
  constexpr long kAny = 1'000'000'000;
  ASSERT_TRUE(terminal.shows(samples(1000, kAny))) << terminal.screen();
  // Paused at once: else this test would have to look within a second.
  terminal.type("rp");
  EXPECT_TRUE(terminal.shows([&](const std::string& now) {
    return has(now, "PAUSED") && samples(0, 900)(now);
  })) << terminal.screen();
  terminal.type("p");
  EXPECT_TRUE(terminal.shows(samples(1000, kAny))) << terminal.screen();
  terminal.type("p");
  ASSERT_TRUE(terminal.shows("PAUSED")) << terminal.screen();
  const auto paused = samples_on(terminal.screen());
  // What comes later is not drawn.
  EXPECT_EQ(python.terminate().signal, SIGTERM);
  EXPECT_TRUE(terminal.shows("all have exited")) << terminal.screen();
  EXPECT_EQ(samples_on(terminal.screen()), paused);
  terminal.type("p");
  EXPECT_TRUE(terminal.shows([&](const std::string& now) {
    return !has(now, "PAUSED") && samples_on(now) >= paused;
  })) << terminal.screen();
}

TEST_P(TopOfOne, RestoresTheTerminal) {
  auto python = start();
  for (const std::string end : {"q", "C-c", "TERM", "HUP"}) {
    TmuxTerminal terminal{of(python)};
    ASSERT_TRUE(terminal.shows("burn")) << terminal.screen();
    EXPECT_EQ(terminal.value("#{alternate_on} #{cursor_flag}"), "1 0");
    if (end == "q") {
      terminal.type(end);
    } else if (end == "C-c") {
      terminal.press(end);
    } else {
      const auto own = terminal.value("#{pane_pid}");
      EXPECT_EQ(run({"pkill", "-" + end, "-P", own}).status, ExitStatus{});
    }
    const auto status = end == "q" ? 0 : end == "C-c" ? 130 : end == "TERM" ? 143 : 129;
    EXPECT_TRUE(terminal.shows(fmt::format("status={}\nicrnl\nicanon\necho\ndone\n", status)))
        << terminal.screen();
    EXPECT_EQ(terminal.value("#{alternate_on} #{cursor_flag}"), "0 1") << end;
  }
  python.expect_alive();
}

TEST_P(TopOfOne, FollowsExecs) {
  constexpr const char* kExecs = R"(
import os, sys
def spin():
    while True:
        pass
def before():
    import threading
    threading.Thread(target=spin, daemon=True).start()
    print('ready', flush=True)
    sys.stdin.readline()
    os.execv(sys.executable, [sys.executable, '-c', '''
import os, sys, threading
def after():
    while True:
        pass
threading.Thread(target=after, daemon=True).start()
sys.stdin.readline()
os.execv('/bin/sleep', ['sleep', '600'])
'''])
before()
)";
  PythonOptions options;
  options.child = environment_of(GetParam());
  PythonProcess python{python_, kExecs, options};
  TmuxTerminal terminal{of(python)};
  ASSERT_TRUE(terminal.shows(" spin  <string>:3")) << terminal.screen();
  python.send_line("");
  ASSERT_TRUE(terminal.shows(" after  <string>:3")) << terminal.screen();
  python.send_line("");
  EXPECT_TRUE(terminal.shows("no Python now")) << terminal.screen();
  python.expect_alive();
}

TEST_P(TopOfOne, GoesOnWhenTheProcessHasExited) {
  auto python = start();
  TmuxTerminal terminal{of(python)};
  ASSERT_TRUE(terminal.shows("burn")) << terminal.screen();
  EXPECT_EQ(python.terminate().signal, SIGTERM);
  EXPECT_TRUE(terminal.shows([](const std::string& now) {
    return has(now, "all have exited") && has(now, "burn");
  })) << terminal.screen();
  terminal.type("q");
  EXPECT_TRUE(terminal.shows("status=0")) << terminal.screen();
}

TEST_P(TopOfOne, FindsProcessesThatStartLater) {
  const auto name = fmt::format("later-{}", ::getpid());
  TmuxTerminal terminal{command("--comm " + name)};
  ASSERT_TRUE(terminal.shows("perf-pyinject top")) << terminal.screen();
  PythonOptions options;
  options.child = environment_of(GetParam());
  const PythonProcess python{
      python_, fmt::format("open('/proc/self/comm', 'w').write('{}')", name) + kShares, options};
  terminal.type("/least");
  EXPECT_TRUE(terminal.shows("least  <string>:11")) << terminal.screen();
}

TEST_P(TopOfOne, FindsChildrenWithTheOption) {
  constexpr const char* kFamily = R"(
import subprocess, sys
child = '''
import time
def child_works(): pass
print('working', flush=True)
while True: child_works()
'''
def start():
    child_ = subprocess.Popen([sys.executable, '-c', child], stdout=subprocess.PIPE)
    child_.stdout.readline()
    return child_
children = [start()]
print('ready', flush=True)
sys.stdin.readline()
children.append(start())
print('started', flush=True)
sys.stdin.readline()
for each in children:
    each.kill()
)";
  PythonOptions options;
  options.child = environment_of(GetParam());
  PythonProcess python{python_, kFamily, options};
  {
    TmuxTerminal terminal{command("--children -p " + pid_of(python))};
    EXPECT_TRUE(terminal.shows(" 2 processes")) << terminal.screen();
    EXPECT_TRUE(terminal.shows("child_works")) << terminal.screen();
    python.send_line("");
    EXPECT_EQ(python.read_line(), "started");
    EXPECT_TRUE(terminal.shows(" 3 processes")) << terminal.screen();
  }
  TmuxTerminal terminal{of(python)};
  EXPECT_TRUE(terminal.shows("(pid " + pid_of(python) + ")")) << terminal.screen();
  python.send_line("");
  EXPECT_TRUE(terminal.shows("all have exited")) << terminal.screen();
  EXPECT_THAT(terminal.screen(), Not(HasSubstr("child_works")));
}

TEST_P(TopOfOne, NeedsATerminalThatItKnows) {
  const auto refused = run({tool(), "top"});
  EXPECT_EQ(refused.status, (ExitStatus{.code = 125, .signal = 0}));
  EXPECT_THAT(refused.err, HasSubstr("top needs a terminal: use --once"));
  for (const auto& [name, why] :
       {std::pair{"unheard-of", "unknown terminal (TERM=unheard-of): use --once"},
        std::pair{"dumb", "this terminal cannot move its cursor (TERM=dumb): use --once"}}) {
    TmuxTerminal terminal{fmt::format("export TERM={}; {}", name, command("-a")),
                          {.columns = 160, .rows = 10}};
    EXPECT_TRUE(terminal.shows([&, why = std::string{why}](const std::string& now) {
      return has(now, "status=125") && has(now, why);
    })) << terminal.screen();
  }
}

TEST_P(TopOfOne, EndsEarlyWithoutProcesses) {
  auto python = start();
  const auto pid = pid_of(python);
  EXPECT_EQ(python.terminate().signal, SIGTERM);
  const auto shown = run({tool(), "top", "--once", "-p", pid});
  EXPECT_EQ(shown.status, (ExitStatus{.code = 125, .signal = 0}));
  EXPECT_THAT(shown.err, HasSubstr("pid " + pid + ": there is no such process"));
}

}  // namespace
}  // namespace pyinject::test
