// The BPF engine's stacks: for every sample, from <module> to the innermost function, on every
// build, with every perf, with frames entered long before the attach.
#include "e2e/bpf_recording.hpp"
#include "e2e/expected_trees.hpp"
#include "e2e/served_tree.hpp"
#include "support/cpu_time.hpp"
#include "support/find_perf.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>

namespace pyinject::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// With the one decimal of the published figures.
constexpr double kValid = 100;

struct Case {
  std::string perf;
  Build build;
  std::string call_graph;  // empty: the engine's own choice
};

// NOLINTNEXTLINE(readability-identifier-naming): the name that GoogleTest looks for
void PrintTo(const Case& one, std::ostream* stream) {
  *stream << one.perf << " on " << name(one.build) << " " << one.call_graph;
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  auto text = fmt::format("{}_{}{}", info.param.perf, name(info.param.build),
                          info.param.call_graph.empty() ? "" : "_" + info.param.call_graph);
  std::ranges::replace(text, '.', '_');
  return text;
}

// The perf that recorded, and a newer one.
std::vector<std::string> readers_of(const std::string& perf) {
  std::vector<std::string> readers{*find_perf(perf)};
  if (const auto newest = find_perf("perf7"); newest && perf != "perf7") {
    readers.push_back(*newest);
  }
  return readers;
}

// All are valid but those that the summary reports as unreadable.
void expect_valid(const Agreement& found, const std::string& wrong, const std::string& messages) {
  const auto unreadable = said_unreadable(messages, found.samples);
  const Agreement but_for{.samples = found.samples, .right = found.right + unreadable};
  EXPECT_GE(but_for.percent(), kValid) << wrong << messages;
}

class BpfStacks : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
    python_ = find_build(GetParam().build);
    if (!python_ || !find_perf(GetParam().perf)) {
      GTEST_SKIP() << "no " << GetParam().perf << " or no " << name(GetParam().build)
                   << " (scripts/pythons)";
    }
  }
  [[nodiscard]] const Interpreter& python() const { return *python_; }
  [[nodiscard]] std::vector<std::string> arguments(const std::string& pid) const {
    auto words = bpf_record(pid, data());
    words.insert(words.end(), {"--perf", *find_perf(GetParam().perf)});
    if (!GetParam().call_graph.empty()) {
      words.insert(words.end(), {"--call-graph", GetParam().call_graph});
    }
    return words;
  }
  [[nodiscard]] std::string data() const { return directory_ / "data"; }

 private:
  TempDir directory_;
  std::optional<Interpreter> python_;
};

// Main loops below C code, in a constructor, in a generator, in an event loop, one that calls
// nothing, and a child.
TEST_P(BpfStacks, AreExactToTheLeaf) {
  PythonOptions options;
  options.args = {"long"};
  options.interpreter_args = {"-W", "ignore"};  // else warns that it forks with threads
  options.child = environment_of(GetParam().build);
  CallTreeServer target{python(), options};
  RunningRecord running{arguments(target.pid())};
  (void)target.fork(20);
  target.nest();
  target.work(1, milliseconds{1500});
  ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  target.pause();
  const auto& messages = running.child().err();
  for (const auto& reader : readers_of(GetParam().perf)) {
    SCOPED_TRACE(reader);
    const auto found = compare(reader, data(), target.trees());
    EXPECT_GE(found.all.samples, 1000U) << messages;
    expect_valid(found.all, describe(found), messages);
    EXPECT_GE(found.leaves.percent(), kInLeaves) << describe(found) << messages;
    EXPECT_GE(found.threads.size(), 6U);
    EXPECT_EQ(found.others, 0U);
    RecordProperty("valid_percent", fmt::format("{:.2f}", found.all.percent()));
    RecordProperty("leaf_percent", fmt::format("{:.2f}", found.leaves.percent()));
    RecordProperty("samples", std::to_string(found.all.samples));
    RecordProperty("wrong", found.wrong);
  }
  if (!GetParam().call_graph.empty()) {
    // C frames have the right position: those of sorted() below the function that it calls.
    const auto called = frames_between(*find_perf(GetParam().perf), data(), "Ranking.by_key",
                                       "Ranking.by_key.<locals>.key", "python");
    EXPECT_GE(called.samples, 5U);
    EXPECT_GE(called.percent(), 98) << "the frames of sorted() are misplaced";
  }
  target.resume();
  target.work(1);
  EXPECT_EQ(target.finish(), ExitStatus{});
}

// Each perf records several versions and one build with a JIT; the same holds for the loops below.
INSTANTIATE_TEST_SUITE_P(
    Perfs, BpfStacks,
    testing::Values(Case{"perf", {.minor = 12}, ""}, Case{"perf", {.minor = 13}, ""},
                    Case{"perf", {.minor = 14}, ""}, Case{"perf", {.minor = 15}, ""},
                    Case{"perf", {.minor = 15, .jit = true}, ""},
                    Case{"perf", {.minor = 12}, "dwarf"}, Case{"perf", {.minor = 14}, "dwarf"},
                    Case{"perf6.12", {.minor = 12}, ""}, Case{"perf6.12", {.minor = 15}, ""},
                    Case{"perf6.12", {.minor = 14, .jit = true}, ""},
                    Case{"perf7", {.minor = 13}, "dwarf"}, Case{"perf7", {.minor = 14}, ""},
                    Case{"perf7", {.minor = 15, .jit = true}, ""}),
    case_name);

struct Server {
  std::string perf;
  Interpreter python;
  bool jit = false;
};

// NOLINTNEXTLINE(readability-identifier-naming): the name that GoogleTest looks for
void PrintTo(const Server& server, std::ostream* stream) {
  *stream << server.perf << " on " << server.python.name << (server.jit ? " with the JIT" : "");
}

// Assigns the perfs to the interpreters in turn.
std::vector<Server> servers() {
  const std::vector<std::string> perfs{"perf", "perf6.12", "perf7"};
  std::vector<Server> all;
  const auto add = [&](const Interpreter& python, bool jit) {
    all.push_back({perfs[all.size() % perfs.size()], python, jit});
  };
  for (const auto& python : interpreters({.each_version = Prefer::kChrooted})) {
    add(python, false);
  }
  for (const int minor : {14, 15}) {
    if (const auto python = plain_interpreter(minor)) {
      add(*python, true);
    }
  }
  return all;
}

class BpfServerLoop : public testing::TestWithParam<Server> {};

// A server whose loop was entered before the attach, also one in its own root.
TEST_P(BpfServerLoop, IsExactToTheLeaf) {
  const auto& [name_of_perf, python, jit] = GetParam();
  const Build build{.minor = python.minor, .jit = jit};
  const auto perf = find_perf(name_of_perf);
  if (const auto lacks = bpf_engine_lacks();
      !lacks.empty() || !perf || (jit && !find_build(build))) {
    GTEST_SKIP() << lacks << " or no " << name_of_perf << " or no " << name(build)
                 << " (scripts/pythons)";
  }
  PythonOptions options;
  options.args = {"320000"};
  options.child = environment_of(build);
  ServedTree target{python, options};
  const TempDir directory;
  auto arguments = bpf_record(target.pid(), directory / "data");
  arguments.insert(arguments.end(), {"--perf", *perf});
  RunningRecord running{arguments};
  target.serve(5, seconds{1});
  ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  EXPECT_EQ(target.finish(), ExitStatus{});
  const auto samples = read_samples(*perf, directory / "data");
  std::size_t valid = 0;
  std::string wrong;
  for (const auto& sample : samples) {
    if (sample.user && begins_served(sample.python)) {
      ++valid;
    } else if (sample.user && wrong.empty()) {
      wrong = testing::PrintToString(sample.python);
    }
  }
  const auto named = count_named(samples);
  ASSERT_GE(named.samples, 300U) << running.child().err();
  expect_valid({.samples = named.samples, .right = valid}, wrong, running.child().err());
  EXPECT_GE(named.whole, kInLeaves) << running.child().err();
  RecordProperty("leaf_percent", fmt::format("{:.2f}", named.whole));
}

INSTANTIATE_TEST_SUITE_P(Perfs, BpfServerLoop, testing::ValuesIn(servers()), [](const auto& one) {
  auto text =
      fmt::format("{}_{}{}", one.param.perf, one.param.python.name, one.param.jit ? "_jit" : "");
  std::ranges::replace(text, '.', '_');
  return text;
});

// A function that calls nothing: every sample must have it.
constexpr auto kHotLoop = R"(
def spin():
    total = 0
    while True:
        total += 1
def serve():
    print('ready', flush=True)
    spin()
serve()
)";

class BpfHotLoop : public testing::TestWithParam<Case> {};

// It was entered before the attach and never returns. Without its innermost function, a stack is
// wrong here; in the tests above, it can be that of a caller at work (served_tree.hpp).
TEST_P(BpfHotLoop, IsExactToTheLeaf) {
  const auto& [name_of_perf, build, call_graph] = GetParam();
  const auto python = find_build(build);
  const auto perf = find_perf(name_of_perf);
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty() || !python || !perf) {
    GTEST_SKIP() << lacks << " or no " << name_of_perf << " or no " << name(build)
                 << " (scripts/pythons)";
  }
  PythonOptions options;
  options.child = environment_of(build);
  PythonProcess target{*python, kHotLoop, options};
  const TempDir directory;
  const auto data = directory / "data";
  auto arguments = bpf_record(std::to_string(target.pid().value()), data);
  arguments.insert(arguments.end(), {"--perf", *perf});
  RunningRecord running{arguments};
  wait_for_cpu_time(target.pid(), seconds{1});
  ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  const std::vector<std::string> wanted{"<module>", "serve", "spin"};
  std::size_t user = 0;
  std::size_t right = 0;
  for (const auto& sample : samples_without_kernel_names(data, *perf)) {
    user += sample.user ? 1 : 0;
    right += sample.user && sample.chain() == wanted ? 1 : 0;
  }
  EXPECT_GE(user, 200U) << running.child().err();
  expect_valid({.samples = user, .right = right}, "", running.child().err());
}

INSTANTIATE_TEST_SUITE_P(Perfs, BpfHotLoop,
                         testing::Values(Case{"perf7", {.minor = 12}, ""},
                                         Case{"perf", {.minor = 13}, ""},
                                         Case{"perf6.12", {.minor = 14}, ""},
                                         Case{"perf6.12", {.minor = 15}, ""},
                                         Case{"perf", {.minor = 14, .jit = true}, ""},
                                         Case{"perf7", {.minor = 15, .jit = true}, ""}),
                         case_name);

}  // namespace
}  // namespace pyinject::test
