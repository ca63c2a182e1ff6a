// The perf scripts with every installed perf, on recordings of a program with a known call tree.
#include "base/text.hpp"
#include "e2e/perf_recording.hpp"
#include "support/shared.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace pyinject::test {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;

using Chain = std::vector<std::string>;
using Folded = std::map<Chain, long>;

const std::set<Chain>& leaf_chains() {
  static const std::set<Chain> chains{
      {"<module>", "main", "Worker.heavy"},
      {"<module>", "main", "Worker.light"},
      {"<module>", "main", "outer", "outer.<locals>.inner"},
      {"<module>", "main", "<lambda>"},
      {"<module>", "main", "drain", "produce"},
      {"<module>", "main", "by_key", "by_key.<locals>.key"},
  };
  return chains;
}

// Accepts every node of the call tree: the leaf chains and their prefixes.
bool is_node(const Chain& chain) {
  return std::ranges::any_of(leaf_chains(), [&](const Chain& leaf) {
    return chain.size() <= leaf.size() && std::equal(chain.begin(), chain.end(), leaf.begin());
  });
}

// Parses lines like `comm;py::f:/path;...;leaf 12`: functions of the program by their bare names,
// without comm.
Folded parse_folded(const std::string& text) {
  Folded result;
  const std::string suffix = ":" + PerfRecording::program();
  for (const std::string_view line : base::split(text, '\n')) {
    const auto blank = line.rfind(' ');
    if (line.empty()) {
      continue;
    }
    const auto count = base::parse_number<long>(line.substr(blank + 1));
    EXPECT_TRUE(count) << line;
    Chain chain;
    for (const std::string_view frame : base::split(line.substr(0, blank), ';')) {
      const bool ours = frame.starts_with("py::") && frame.ends_with(suffix);
      chain.emplace_back(ours ? frame.substr(4, frame.size() - 4 - suffix.size()) : frame);
    }
    chain.erase(chain.begin());
    result[chain] += count.value_or(0);
  }
  return result;
}

long sum(const Folded& folded) {
  long result = 0;
  for (const auto& [chain, count] : folded) {
    result += count;
  }
  return result;
}

// The samples in which the function NAME is the innermost one.
double own(const Folded& python, const std::string& name) {
  long result = 0;
  for (const auto& [chain, count] : python) {
    result += !chain.empty() && chain.back() == name ? count : 0;
  }
  return static_cast<double>(result);
}

std::string good(const RunResult& outcome) {
  EXPECT_EQ(outcome.status, ExitStatus{}) << outcome.err;
  return outcome.out;
}

// A recording, and what pyinject-collapsed prints of it.
class ScriptedRecording {
 public:
  ScriptedRecording(const std::string& perf, const Interpreter& python,
                    const std::string& call_graph)
      : file_{perf, python, call_graph, "1.5"}, samples_{file_.samples()} {}
  [[nodiscard]] const PerfRecording& file() const { return file_; }
  [[nodiscard]] long samples() const { return samples_; }
  // Runs the script once for each OPTION.
  [[nodiscard]] const RunResult& collapsed(const std::string& option) {
    return outcomes_.of(option, [&] {
      return file_.script("pyinject-collapsed", option.empty() ? PerfRecording::Arguments{}
                                                               : PerfRecording::Arguments{option});
    });
  }

 private:
  PerfRecording file_;
  long samples_;
  Shared<RunResult> outcomes_;
};

class PerfScripts : public ::testing::TestWithParam<std::string> {
 protected:
  static void TearDownTestSuite() { recordings().forget(); }
  static Shared<ScriptedRecording>& recordings() {
    static Shared<ScriptedRecording> all;
    return all;
  }
  // Skips with a message if an interpreter or perf is missing.
  void record(int minor, const std::string& call_graph) {
    const auto perf = find_perf(GetParam());
    const auto python = find_interpreter({.minor = minor, .root = false, .trampoline = true});
    if (!perf || !python) {
      GTEST_SKIP() << (perf ? "no CPython 3." + std::to_string(minor) + " with the perf trampoline"
                            : "no " + GetParam())
                   << " (scripts/pythons brings it)";
    }
    const auto key = GetParam() + " " + std::to_string(minor) + " " + call_graph;
    recording_ = &recordings().of(key, [&] {
      return ScriptedRecording{*perf, *python, call_graph};
    });
    ASSERT_EQ(recording().result().status, ExitStatus{}) << recording().result().err;
    ASSERT_GE(samples(), 800);
  }

  [[nodiscard]] Folded collapsed(const std::string& option = "") const {
    return parse_folded(good(recording_->collapsed(option)));
  }

  // Worker.heavy takes twice the CPU time of Worker.light: about 400 and 200 samples, so a standard
  // deviation of the ratio of 0.17.
  void expect_known_split() const {
    const auto python = collapsed("--python-only");
    const auto light = own(python, "Worker.light");
    ASSERT_GE(light, 100);
    EXPECT_THAT(own(python, "Worker.heavy") / light, AllOf(Ge(1.4), Le(2.8)));
    EXPECT_THAT(own(python, "outer.<locals>.inner") / light, AllOf(Ge(0.65), Le(1.5)));
  }

  void expect_innermost() const {
    const RunResult& folded = recording_->collapsed("--python-only");
    EXPECT_EQ(sum(collapsed("--python-only")), samples());
    if (folded.out.find("Worker.") != std::string::npos) {
      expect_known_split();
    } else {
      EXPECT_GE(version_of_perf(find_perf(GetParam()).value()).first, 7);
      // Only samples inside a trampoline itself can have a name, which are few if any.
      long nameless = 0;
      for (const auto& [chain, count] : parse_folded(good(folded))) {
        nameless += chain.empty() ? count : 0;  // only the thread
      }
      EXPECT_GE(nameless, samples() * 95 / 100) << folded.out;
      if (nameless == samples()) {
        EXPECT_THAT(folded.err, HasSubstr("no sample has a Python function in its call chain"));
      }
    }
  }

  [[nodiscard]] const PerfRecording& recording() const { return recording_->file(); }
  [[nodiscard]] long samples() const { return recording_->samples(); }

  ScriptedRecording* recording_ = nullptr;
};

TEST_P(PerfScripts, CompleteStacksAreTheCallTree) {
  ASSERT_NO_FATAL_FAILURE(record(15, "fp"));
  if (IsSkipped()) {
    return;
  }
  for (const auto* const option : {"", "--python-only", "--strip-interpreter"}) {
    EXPECT_EQ(sum(collapsed(option)), samples()) << option;
  }
  expect_known_split();

  const Folded python = collapsed("--python-only");
  long in_main = 0;
  long in_tree = 0;
  for (const auto& [chain, count] : python) {
    if (std::ranges::find(chain, "main") != chain.end()) {
      in_main += count;
      in_tree += is_node(chain) ? count : 0;
    }
  }
  EXPECT_GE(in_main, samples() * 85 / 100) << "the rest is interpreter startup";
  EXPECT_GE(in_tree, in_main * 97 / 100);
  for (const Chain& leaf : leaf_chains()) {
    const auto found = python.find(leaf);
    EXPECT_GE(found == python.end() ? 0 : found->second, 20) << ::testing::PrintToString(leaf);
  }
}

TEST_P(PerfScripts, StrippedStacksHaveNoMachinery) {
  ASSERT_NO_FATAL_FAILURE(record(15, "fp"));
  if (IsSkipped()) {
    return;
  }
  const std::string text = good(recording_->collapsed("--strip-interpreter"));
  EXPECT_THAT(text, Not(HasSubstr("PyEval_Eval")));
  EXPECT_THAT(text, Not(HasSubstr("Py_RunMain")));
  EXPECT_THAT(text, HasSubstr(";py::by_key:" + PerfRecording::program() +
                              ";py::by_key.<locals>.key:" + PerfRecording::program()));
  const std::string whole = good(recording_->collapsed(""));
  EXPECT_THAT(whole, HasSubstr("PyEval_EvalCode;py::<module>:" + PerfRecording::program()));
}

TEST_P(PerfScripts, BothWaysOfRunningGiveTheSame) {
  ASSERT_NO_FATAL_FAILURE(record(15, "fp"));
  if (IsSkipped()) {
    return;
  }
  const PerfRecording& r = recording();
  const std::string python = good(r.script("pyinject-collapsed", {"--python-only", "--period"}));
  EXPECT_THAT(python, HasSubstr(";py::main:"));
  EXPECT_EQ(good(r.report("pyinject-collapsed", {"--python-only", "--period"})), python);
  EXPECT_EQ(good(r.report("pyinject-collapsed", {"--", "--python-only", "--period"})), python);

  const std::string picture =
      good(r.script("pyinject-flamegraph", {"--python-only", "--title=it's a title", "--least=5"}));
  EXPECT_THAT(picture, AllOf(HasSubstr("</svg>"), HasSubstr("Worker.heavy")));
  EXPECT_EQ(good(r.report("pyinject-flamegraph",
                          {"--title=it's a title", "--", "--least", "5", "--python-only"})),
            picture);

  // Options that are not ours go to perf.
  EXPECT_EQ(good(r.report("pyinject-collapsed", {"--comm", "no such thread"})), "");
  const RunResult wrong = r.script("pyinject-collapsed", {"--no-such-option"});
  EXPECT_EQ(wrong.status.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("unrecognized arguments: --no-such-option"));
  EXPECT_THAT(good(r.script("pyinject-collapsed", {"--help"})), HasSubstr("--python-only"));
}

// Without frame pointers, perf's DWARF unwinding stops at the innermost trampoline, which suffices
// for self times. perf 7 does not even reach that, and the scripts must report it.
TEST_P(PerfScripts, InnermostFunctionsAreCounted) {
  ASSERT_NO_FATAL_FAILURE(record(12, "dwarf,16384"));
  if (IsSkipped()) {
    return;
  }
  expect_innermost();
}

TEST_P(PerfScripts, InnermostFunctionsOf313AreCounted) {
  ASSERT_NO_FATAL_FAILURE(record(13, "dwarf,16384"));
  if (IsSkipped()) {
    return;
  }
  expect_innermost();
}

INSTANTIATE_TEST_SUITE_P(Perfs, PerfScripts, ::testing::Values("perf", "perf6.12", "perf7"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace pyinject::test
