// The stacks of greenlets, which the program's code tells: each sample in a function that burns
// time has exactly its greenlet's functions, in their order, the mark at its root and, by BPF,
// those of its parents.
#include "e2e/both_engines.hpp"
#include "e2e/bpf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "support/cpu_time.hpp"
#include "support/paths.hpp"
#include "support/python_process.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::test {
namespace {

using Words = std::vector<std::string>;

struct Row {
  int minor = 0;
  std::string engine;
};

// NOLINTNEXTLINE(readability-identifier-naming): the name that GoogleTest looks for
void PrintTo(const Row& row, std::ostream* stream) {
  *stream << "3." << row.minor << " " << row.engine;
}

constexpr std::string_view kMark = "[greenlet]";
constexpr std::string_view kUnnamed = "[unnamed Python functions]";

// OWN with the functions of the thread, in which the parent of a greenlet is suspended.
std::vector<Words> with_thread(const Words& own) {
  std::vector<Words> all;
  for (const auto& thread : {Words{"run", "<module>"}, Words{"run", "deeper", "<module>"}}) {
    all.push_back(own);
    all.back().insert(all.back().end(), thread.begin(), thread.end());
  }
  return all;
}

// By the innermost Python function, innermost first: "C" is one or more C functions.
const std::map<std::string, std::vector<Words>>& told() {
  static const std::map<std::string, std::vector<Words>> all{
      {"burn_a", with_thread({"burn_a", "work_a", "root_a", "C", "[greenlet]"})},
      {"burn_b", with_thread({"burn_b", "key", "C", "root_b", "C", "[greenlet]"})},
      {"burn_c",
       with_thread({"burn_c", "root_c", "C", "[greenlet]", "root_starter", "[greenlet]"})},
      {"burn_main",
       {{"burn_main", "run", "<module>", "C"},
        {"burn_main", "run", "C", "deeper", "<module>", "C"}}}};
  return all;
}

// The sample's functions as in told(), without C functions inside of the innermost Python one.
Words words_of(const ScriptedSample& sample) {
  Words words;
  for (const auto& frame : sample.frames) {
    const auto word = frame.python() ? frame.function()
                      : frame.symbol.starts_with('[') && frame.symbol != "[unknown]" ? frame.symbol
                                                                                     : "C";
    if (word != "C" || (!words.empty() && words.back() != "C")) {
      words.push_back(word);
    }
  }
  return words;
}

// The Python functions of the greenlet that runs, and its mark.
Words python_of(Words words) {
  const auto mark = std::ranges::find(words, kMark);
  words.erase(mark == words.end() ? mark : mark + 1, words.end());
  std::erase(words, "C");
  return words;
}

class Greenlets : public testing::TestWithParam<Row> {
 protected:
  void SetUp() override {
    if (const auto lacks = bpf_engine_lacks(); GetParam().engine == "bpf" && !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
    python_ = find_interpreter({.minor = GetParam().minor, .module = "greenlet"});
    if (!python_) {
      GTEST_SKIP() << "no CPython 3." << GetParam().minor << " with greenlet (scripts/pythons)";
    }
  }
  std::vector<ScriptedSample> record(const Words& args, const Words& options = {}) {
    PythonProcess target{*python_,
                         target_source("greenlets.py"),
                         {.interpreter_args = {}, .args = args, .child = {}}};
    Words words{"--engine", GetParam().engine,
                "-F",       "999",
                "-e",       "cpu-clock",
                "-o",       data(),
                "-p",       std::to_string(target.pid().value())};
    words.insert(words.end(), options.begin(), options.end());
    RunningRecord running{words};
    wait_for_cpu_time(target.pid(), std::chrono::milliseconds{1200});
    EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
    messages_ = running.child().err();
    target.expect_alive();
    return scripted_samples(data());
  }
  [[nodiscard]] const Interpreter& python() const { return *python_; }
  [[nodiscard]] std::string data() const { return directory_ / "data"; }
  [[nodiscard]] const std::string& messages() const { return messages_; }

 private:
  TempDir directory_;
  std::optional<Interpreter> python_;
  std::string messages_;
};

// Whether WORDS are those of one of CHAINS. By the trampoline each function has C functions around
// it, and those entered before the attach may be missing: a mark says so.
bool is_told(const Words& words, const std::vector<Words>& chains, const std::string& engine) {
  return std::ranges::any_of(chains, [&](const Words& chain) {
    if (engine == "bpf") {
      return words == chain;
    }
    auto all = python_of(chain);
    auto found = python_of(words);
    const bool missing = std::erase(found, std::string{kUnnamed}) > 0;
    if (!missing) {
      return found == all;
    }
    const bool marked = std::erase(found, std::string{kMark}) > 0;
    return marked == (std::erase(all, std::string{kMark}) > 0) &&
           std::ranges::all_of(found, [&, at = all.begin()](const auto& word) mutable {
             at = std::find(at, all.end(), word);
             return at != all.end() && (++at, true);
           });
  });
}

TEST_P(Greenlets, HaveTheirOwnFunctions) {
  std::map<std::string, std::size_t> exact;
  std::map<Words, std::size_t> wrong;
  std::size_t all = 0;
  for (const auto& sample : record({})) {
    const auto* const innermost = sample.innermost();
    const auto chains = innermost == nullptr ? told().end() : told().find(innermost->function());
    if (chains == told().end()) {
      continue;
    }
    ++all;
    const auto words = words_of(sample);
    if (is_told(words, chains->second, GetParam().engine)) {
      ++exact[chains->first];
    } else {
      ++wrong[words];
    }
  }
  std::size_t right = 0;
  for (const auto& [leaf, chains] : told()) {
    EXPECT_GE(exact[leaf], 20U) << leaf << messages();
    right += exact[leaf];
  }
  EXPECT_GE(static_cast<double>(right), 0.99 * static_cast<double>(all))
      << testing::PrintToString(wrong) << messages();
}

// No sample shows functions of two greenlets, whatever moment of a switch it hits.
TEST_P(Greenlets, AreNotMixedWhileTheySwitch) {
  const std::map<std::string, std::string> owners{
      {"work_a", "a"},      {"root_a", "a"},        {"key", "b"},
      {"root_b", "b"},      {"root_c", "c"},        {"run", "thread"},
      {"deeper", "thread"}, {"<module>", "thread"}, {"root_starter", "starter"}};
  const auto owners_of = [&](auto begin, auto end) {
    std::set<std::string> found;
    for (; begin != end; ++begin) {
      if (const auto owner = owners.find(*begin); owner != owners.end()) {
        found.insert(owner->second);
      }
    }
    return found;
  };
  std::map<std::string, std::size_t> seen;
  for (const auto& sample : record({"spin"})) {
    const auto words = words_of(sample);
    const auto mark = std::ranges::find(words, kMark);
    const auto found = owners_of(words.begin(), mark);
    const auto parents = owners_of(mark, words.end());
    EXPECT_LE(found.size(), 1U) << testing::PrintToString(words);
    EXPECT_FALSE(found.contains("thread") && mark != words.end()) << testing::PrintToString(words);
    const auto legal = found.contains("c") ? std::set<std::string>{"starter", "thread"}
                                           : std::set<std::string>{"thread"};
    EXPECT_TRUE(parents.empty() || parents == legal) << testing::PrintToString(words);
    for (const auto& owner : found) {
      ++seen[owner];
    }
  }
  EXPECT_GE(seen["thread"], 5U) << messages();
  EXPECT_GE(seen["a"], 5U) << messages();
}

// Each of them runs for a moment only, which the periodic reads of the thread mostly miss: of the
// names, they found a third. A look at all greenlets ends after a time, so some may have the mark.
constexpr auto kSuspended = R"(
import sys, greenlet
def burn(count):
    for _ in range(count):
        pass
def work():
    hub.switch()
    burn(400000)
def root():
    work()
hub = greenlet.getcurrent()
suspended = [greenlet.greenlet(root) for i in range(40)]
for each in suspended:
    each.switch()
print("ready", flush=True)
sys.stdin.readline()
for each in suspended:
    each.switch()
print("done", flush=True)
sys.stdin.readline()
)";

TEST_P(Greenlets, AreNamedIfTheyWereSuspendedAtTheAttach) {
  PythonProcess target{python(), kSuspended};
  RunningRecord running{{"--engine", GetParam().engine, "-F", "999", "-e", "cpu-clock",
                         "--call-graph", "dwarf", "-o", data(), "-p",
                         std::to_string(target.pid().value())}};
  target.send_line("go");
  EXPECT_EQ(target.read_line(), "done");
  EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  std::map<Words, std::size_t> wrong;
  std::size_t right = 0;
  std::size_t all = 0;
  for (const auto& sample : scripted_samples(data())) {
    const auto* const innermost = sample.innermost();
    if (innermost == nullptr || innermost->function() != "burn") {
      continue;
    }
    ++all;
    const auto words = python_of(words_of(sample));
    if (words == Words{"burn", "work", "root", "[greenlet]"}) {
      ++right;
    } else if (std::ranges::find(words, kUnnamed) == words.end()) {
      ++wrong[words];
    }
  }
  EXPECT_GE(right, 20U) << running.child().err();
  EXPECT_GE(static_cast<double>(right), 0.6 * static_cast<double>(all)) << running.child().err();
  EXPECT_THAT(wrong, testing::IsEmpty());
}

// As greenlet_spawn() of SQLAlchemy. The greenlets of both coroutines begin at the same address.
constexpr auto kSpawned = R"(
import asyncio, greenlet
async def spawn(function):
    context = greenlet.greenlet(function, greenlet.getcurrent())
    result = context.switch()
    while not context.dead:
        result = context.switch(await result)
def burn_a():
    for _ in range(20000):
        pass
def burn_b():
    for _ in range(20000):
        pass
def execute(burn):
    burn()
    greenlet.getcurrent().parent.switch(asyncio.sleep(0))
    burn()
async def order_a():
    await spawn(lambda: execute(burn_a))
async def order_b():
    await spawn(lambda: execute(burn_b))
async def main():
    print("ready", flush=True)
    while True:
        await asyncio.gather(order_a(), order_b())
asyncio.run(main())
)";

TEST_P(Greenlets, AreBelowTheCoroutineThatWaitsForThem) {
  PythonProcess target{python(), kSpawned};
  RunningRecord running{{"--engine", GetParam().engine, "-F", "999", "-e", "cpu-clock", "-o",
                         data(), "-p", std::to_string(target.pid().value())}};
  wait_for_cpu_time(target.pid(), std::chrono::milliseconds{700});
  EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  std::map<std::string, std::size_t> right;
  std::map<Words, std::size_t> wrong;
  std::size_t all = 0;
  for (const auto& sample : scripted_samples(data())) {
    const auto words = words_of(sample);
    if (words.empty() || !words[0].starts_with("burn_")) {
      continue;
    }
    ++all;
    const auto letter = words[0].substr(5);
    const auto own = python_of(words);
    const Words parents{std::ranges::find(words, kMark), words.end()};
    const bool told = GetParam().engine == "bpf"
                          ? parents.size() > 3 && parents[1] == "spawn" &&
                                parents[2] == "order_" + letter && parents.back() == "<module>"
                          : parents.size() == 1;
    if (told && own.size() == 4 && own[1] == "execute" && own[3] == kMark) {
      ++right[letter];
    } else {
      ++wrong[words];
    }
  }
  EXPECT_GE(right["a"], 20U) << running.child().err();
  EXPECT_GE(right["b"], 20U) << running.child().err();
  EXPECT_GE(static_cast<double>(right["a"] + right["b"]), 0.99 * static_cast<double>(all))
      << testing::PrintToString(wrong);
}

std::vector<Row> rows() {
  std::vector<Row> all;
  for (const int minor : {13, 14, 15}) {
    for (const auto* const engine : {"bpf", "trampoline"}) {
      all.push_back({.minor = minor, .engine = engine});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Rows, Greenlets, testing::ValuesIn(rows()),
                         [](const testing::TestParamInfo<Row>& each) {
                           return fmt::format("py3_{}_{}", each.param.minor, each.param.engine);
                         });

}  // namespace
}  // namespace pyinject::test
