// Processes with several interpreters: each sample, and each thread of a dump, has the functions of
// its own.
#include "e2e/bpf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "support/cpu_time.hpp"
#include "support/paths.hpp"
#include "support/statistics.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace pyinject::test {
namespace {

using Chain = std::vector<std::string>;
using std::chrono::milliseconds;

bool begins(const Chain& whole, const Chain& chain) {
  return chain.size() <= whole.size() && std::equal(chain.begin(), chain.end(), whole.begin());
}

// The number between the first letter of FUNCTION and its suffix: 17 in "t17_leaf"; empty: it is
// not of this form.
std::string number_of(const std::string& function, char first) {
  const auto end = function.find_first_not_of("0123456789", 1);
  return function.starts_with(first) && end != std::string::npos && end > 1 && function[end] == '_'
             ? function.substr(1, end - 1)
             : "";
}

// Whether the main thread of `sub_interpreters.py nested` can have CHAIN.
bool is_nested(const Chain& chain) {
  static const std::vector<Chain> wholes{
      {"<module>", "main_loop", "main_top", "main_leaf"},
      {"<module>", "main_loop", "main_top", "run", "<module>", "new_top", "new_leaf"},
      {"<module>", "main_loop", "main_top", "run", "<module>", "new_top", "run", "<module>",
       "old_top", "old_leaf"}};
  return std::ranges::any_of(wholes, [&](const auto& whole) { return begins(whole, chain); });
}

// The number of the interpreter whose thread has CHAIN in `sub_interpreters.py parallel`; empty:
// none. A failure if it has functions of another one.
std::string number_in(const Chain& chain) {
  const auto call = std::ranges::find_if(
      chain, [](const auto& function) { return !number_of(function, 't').empty(); });
  if (call == chain.end()) {
    return "";
  }
  const auto number = number_of(*call, 't');
  const Chain whole{"t" + number + "_call", "run", "<module>", "t" + number + "_top",
                    "t" + number + "_leaf"};
  EXPECT_TRUE(begins(whole, Chain{call, chain.end()})) << testing::PrintToString(chain);
  EXPECT_EQ(chain.front(), "Thread._bootstrap") << testing::PrintToString(chain);
  return number;
}

// The number of samples whose C functions are missing, by the summary in MESSAGES.
std::size_t said_to_be_python_only(const std::string& messages) {
  const std::regex said{"([0-9,]+) without the C functions"};
  std::smatch words;
  if (!std::regex_search(messages, words, said)) {
    return 0;
  }
  std::string digits = words[1];
  std::erase(digits, ',');
  return std::stoul(digits);
}

class BpfInterpreters : public testing::TestWithParam<Build> {
 protected:
  void SetUp() override {
    python_ = find_build(GetParam());
    if (const auto lacks = bpf_engine_lacks(); !lacks.empty() || !python_) {
      GTEST_SKIP() << lacks << " or no " << name(GetParam()) << " (scripts/pythons)";
    }
  }
  // Samples of sub_interpreters.py in user space, all of which have Python functions.
  [[nodiscard]] std::vector<ScriptedSample> record(const std::string& mode,
                                                   const std::string& frequency = "999") {
    PythonOptions options;
    options.args = {mode};
    PythonProcess target{*python_, target_source("sub_interpreters.py"), options};
    const TempDir directory;
    auto arguments =
        bpf_record(std::to_string(target.pid().value()), directory / "data", frequency);
    arguments.emplace_back("--gil");
    RunningRecord running{arguments};
    // An interpreter that lives shortly takes a tenth of a second on a slow machine.
    wait_for_cpu_time(target.pid(), milliseconds{mode == "short" ? 2000 : 600});
    EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
    target.pause();
    auto samples = samples_without_kernel_names(directory / "data");
    const auto all = samples.size();
    std::erase_if(samples, [](const auto& sample) { return !sample.user; });
    const auto without =
        std::erase_if(samples, [](const ScriptedSample& sample) { return sample.chain().empty(); });
    // Threads start and end in pools.
    EXPECT_LE(without,
              (mode == "pool" ? all / 20 : 0) + said_unreadable(running.child().err(), all))
        << running.child().err();
    messages_ = running.child().err();
    return samples;
  }

  std::optional<Interpreter> python_;
  std::string messages_;
};

// An interpreter runs inside of another one's call, and need not be the newer one.
TEST_P(BpfInterpreters, AreInTheOrderOfTheirCalls) {
  std::map<std::string, std::size_t> innermost;
  std::size_t held = 0;
  const auto samples = record("nested");
  for (const auto& sample : samples) {
    const auto chain = sample.chain();
    EXPECT_TRUE(is_nested(chain)) << testing::PrintToString(chain);
    ++innermost[chain.back()];
    held += chain.back().ends_with("_leaf") && holds_gil(sample) ? 1 : 0;
  }
  const auto leaves = innermost["main_leaf"] + innermost["new_leaf"] + innermost["old_leaf"];
  SCOPED_TRACE(testing::PrintToString(innermost) + messages_);
  EXPECT_TRUE(share_is_at_least({.count = leaves, .all = samples.size()}, 0.9));
  EXPECT_TRUE(share_is_at_least({.count = held, .all = leaves}, 0.99));
  for (const auto* const leaf : {"main_leaf", "new_leaf", "old_leaf"}) {
    EXPECT_TRUE(share_is_near({.count = innermost[leaf], .all = leaves}, 1.0 / 3, 0.03)) << leaf;
  }
}

// Each thread runs one of its own. In 3.12 its state belongs to the thread that created it.
TEST_P(BpfInterpreters, AreThoseOfTheirThreads) {
  std::map<std::string, std::string> threads;  // by number
  std::size_t leaves = 0;
  const auto samples = record("parallel");
  for (const auto& sample : samples) {
    const auto chain = sample.chain();
    const auto number = number_in(chain);
    if (number.empty()) {
      continue;
    }
    const auto thread = threads.emplace(number, sample.tid).first;
    EXPECT_EQ(thread->second, sample.tid) << testing::PrintToString(chain);
    leaves += chain.back().ends_with("_leaf") ? 1 : 0;
  }
  EXPECT_EQ(threads.size(), 8U);
  EXPECT_TRUE(share_is_at_least({.count = leaves, .all = samples.size()}, 0.9)) << messages_;
}

// They do the same one after the other, so their functions have the same addresses.
TEST_P(BpfInterpreters, KeepTheirNamesEvenIfShortLived) {
  std::set<std::string> numbers;
  for (const auto& sample : record("short")) {
    const auto chain = sample.chain();
    std::set<std::string> own;
    for (const auto& function : chain) {
      if (const auto number = number_of(function, 's'); !number.empty()) {
        own.insert(number);
      }
    }
    EXPECT_LE(own.size(), 1U) << testing::PrintToString(chain);
    if (chain.back().ends_with("_leaf")) {
      const auto& number = *own.begin();
      const Chain tail{"s" + number + "_call", "run", "<module>", "s" + number + "_top",
                       "s" + number + "_leaf"};
      EXPECT_TRUE(chain.size() > tail.size() &&
                  std::equal(tail.rbegin(), tail.rend(), chain.rbegin()))
          << testing::PrintToString(chain);
      numbers.insert(number);
    }
  }
  EXPECT_GE(numbers.size(), 10U) << messages_;
}

// Other threads change the lists of interpreters and threads while the program reads them. While an
// interpreter imports extension modules, its thread has two states of the main one.
TEST_P(BpfInterpreters, HaveWholeStacksWhileOthersStartAndEnd) {
  const auto samples = record("hasty", "4999");
  for (const auto& sample : samples) {
    const auto chain = sample.chain();
    EXPECT_EQ(chain.front(), "Thread._bootstrap") << testing::PrintToString(chain);
  }
  EXPECT_GE(samples.size(), 1000U) << messages_;
  EXPECT_TRUE(
      share_is_at_most({.count = said_to_be_python_only(messages_), .all = samples.size()}, 0.001))
      << messages_;
}

// In 3.12 the thread that creates an interpreter keeps an idle state in it.
TEST_P(BpfInterpreters, AreIgnoredWhileIdle) {
  const std::vector<Chain> wholes{
      {"<module>", "main_loop", "main_top", "main_leaf"},
      {"<module>", "main_loop", "main_top", "run", "<module>", "sub_top", "sub_leaf"}};
  std::map<std::string, std::size_t> innermost;
  const auto samples = record("many");
  for (const auto& sample : samples) {
    const auto chain = sample.chain();
    EXPECT_TRUE(std::ranges::any_of(wholes, [&](const auto& one) { return begins(one, chain); }))
        << testing::PrintToString(chain);
    ++innermost[chain.back()];
  }
  SCOPED_TRACE(testing::PrintToString(innermost) + messages_);
  const auto leaves = innermost["main_leaf"] + innermost["sub_leaf"];
  EXPECT_TRUE(share_is_at_least({.count = leaves, .all = samples.size()}, 0.9));
  EXPECT_TRUE(share_is_near({.count = innermost["sub_leaf"], .all = leaves}, 0.5, 0.03));
}

INSTANTIATE_TEST_SUITE_P(Pythons, BpfInterpreters, testing::ValuesIn(builds_without_jit()),
                         BuildName{});

class DumpInterpreters : public testing::TestWithParam<Build> {
 protected:
  void SetUp() override {
    python_ = find_build(GetParam());
    if (!python_) {
      GTEST_SKIP() << "no " << name(GetParam()) << " (scripts/pythons)";
    }
  }
  // The chains of all threads in COUNT dumps of sub_interpreters.py. Those that dump says are not
  // whole are counted in unsettled_: on a busy machine, a thread may wait for a processor in the
  // middle of a call.
  [[nodiscard]] std::vector<Chain> dump(const std::string& mode, int count) {
    std::vector<Chain> chains;
    PythonOptions options;
    options.args = {mode};
    PythonProcess target{*python_, target_source("sub_interpreters.py"), options};
    for (int i = 0; i < count; ++i) {
      const auto dumped =
          run({tool(), "dump", "--json", "-p", std::to_string(target.pid().value())});
      EXPECT_EQ(dumped.status, ExitStatus{}) << dumped.err;
      const auto process = nlohmann::json::parse(dumped.out).at("processes").at(0);
      for (const auto& thread : process.at("threads")) {
        if (!thread.at("settled").get<bool>()) {
          ++unsettled_;
          continue;
        }
        auto& chain = chains.emplace_back();
        for (const auto& frame : thread.at("frames")) {
          chain.insert(chain.begin(), frame.at("function").get<std::string>());
        }
      }
    }
    return chains;
  }

  std::optional<Interpreter> python_;
  std::size_t unsettled_ = 0;
};

TEST_P(DumpInterpreters, AreInTheOrderOfTheirCalls) {
  for (const auto& chain : dump("nested", 20)) {
    EXPECT_TRUE(is_nested(chain)) << testing::PrintToString(chain);
  }
}

TEST_P(DumpInterpreters, AreThoseOfTheirThreads) {
  std::map<std::string, std::size_t> leaves;
  for (const auto& chain : dump("parallel", 15)) {
    const auto number = number_in(chain);
    leaves[number] += !number.empty() && chain.back().ends_with("_leaf") ? 1 : 0;
  }
  leaves.erase("");
  EXPECT_EQ(leaves.size(), 8U) << testing::PrintToString(leaves);
  for (const auto& [number, count] : leaves) {
    EXPECT_GE(count, 2U) << number;
  }
}

// Their states and code objects are freed while they are read.
TEST_P(DumpInterpreters, ShortLivedOnesAreComplete) {
  const auto chains = dump("hasty", 50);
  EXPECT_EQ(chains.size() + unsettled_, 250U);
  EXPECT_TRUE(share_is_at_least({.count = chains.size(), .all = 250}, 0.9)) << unsettled_;
  for (const auto& chain : chains) {
    EXPECT_TRUE(!chain.empty() && (chain.front() == "Thread._bootstrap" ||
                                   begins({"<module>", "Event.wait", "Condition.wait"}, chain)))
        << testing::PrintToString(chain);
  }
}

INSTANTIATE_TEST_SUITE_P(Pythons, DumpInterpreters, testing::ValuesIn(builds_without_jit()),
                         BuildName{});

// concurrent.interpreters and InterpreterPoolExecutor.
class BpfInterpreterPools : public BpfInterpreters {};

TEST_P(BpfInterpreterPools, HaveTheFunctionsOfTheirWorkers) {
  std::map<std::string, std::set<Chain>> chains;  // by leaf
  std::map<std::string, std::size_t> innermost;
  for (const auto& sample : record("pool")) {
    const auto chain = sample.chain();
    const auto of_pool = std::ranges::count(chain, "p_top");
    const auto of_thread = std::ranges::count(chain, "c_top");
    EXPECT_LE(of_pool + of_thread, 1) << testing::PrintToString(chain);
    ++innermost[chain.back()];
    if (chain.back().ends_with("_leaf")) {
      chains[chain.back()].insert(chain);
    }
  }
  SCOPED_TRACE(testing::PrintToString(innermost) + messages_);
  for (const std::string letter : {"p", "c"}) {
    const auto& own = chains[letter + "_leaf"];
    ASSERT_EQ(own.size(), 1U) << testing::PrintToString(own);
    const Chain tail{"<module>", letter + "_top", letter + "_leaf"};
    EXPECT_EQ(own.begin()->front(), "Thread._bootstrap");
    EXPECT_TRUE(own.begin()->size() > tail.size() &&
                std::equal(tail.rbegin(), tail.rend(), own.begin()->rbegin()))
        << testing::PrintToString(own);
    EXPECT_GE(innermost[letter + "_leaf"], 50U);
  }
}

INSTANTIATE_TEST_SUITE_P(Pythons, BpfInterpreterPools,
                         testing::Values(Build{.minor = 14}, Build{.minor = 15}), BuildName{});

}  // namespace
}  // namespace pyinject::test
