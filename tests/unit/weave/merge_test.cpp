#include "weave/merge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::weave {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// One letter per address, innermost first: c is a C function, E the evaluator, T a trampoline, U
// one without a name.
std::vector<AddressKind> kinds(std::string_view letters) {
  std::vector<AddressKind> result;
  for (const char letter : letters) {
    result.push_back(letter == 'E'   ? AddressKind::kEvaluator
                     : letter == 'T' ? AddressKind::kTrampoline
                     : letter == 'U' ? AddressKind::kUnnamedTrampoline
                                     : AddressKind::kOther);
  }
  return result;
}

// "3t": the evaluator's frames belong at index 3; the trampoline already stands for its outermost
// frame.
std::vector<std::string> found(std::string_view letters) {
  std::vector<std::string> result;
  for (const auto& one : evaluators_of(kinds(letters))) {
    result.push_back(std::to_string(one.behind) + (one.trampoline ? "t" : ""));
  }
  return result;
}

TEST(Merge, FindsEvaluatorsFromTheOutermostOn) {
  EXPECT_THAT(found(""), IsEmpty());
  EXPECT_THAT(found("ccc"), IsEmpty());
  EXPECT_THAT(found("cEcEc"), ElementsAre("4", "2"));
  EXPECT_THAT(found("EE"), ElementsAre("2", "1"));
  EXPECT_THAT(found("cETcEc"), ElementsAre("5", "2t"));
  EXPECT_THAT(found("ETETE"), ElementsAre("5", "3t", "1t"));
  // The function that the trampoline called was hidden, or is in its own prologue.
  EXPECT_THAT(found("TcE"), ElementsAre("3", "0t"));
  EXPECT_THAT(found("cTcE"), ElementsAre("4", "1t"));
}

bool lacks_a_name(std::string_view letters, std::size_t groups) {
  return has_unnamed(evaluators_of(kinds(letters)), groups);
}

TEST(Merge, KnowsWhichActivationsHaveNoName) {
  EXPECT_FALSE(lacks_a_name("", 0));
  EXPECT_FALSE(lacks_a_name("cccc", 0));
  EXPECT_FALSE(lacks_a_name("cETcET", 0));
  EXPECT_TRUE(lacks_a_name("cETcE", 0));
  EXPECT_FALSE(lacks_a_name("cETcE", 1));
  EXPECT_TRUE(lacks_a_name("cEcE", 1));
  EXPECT_TRUE(lacks_a_name("cEUcET", 2)) << "the function that the trampoline runs";
  EXPECT_FALSE(lacks_a_name("cUcET", 1)) << "code of a JIT that calls no evaluator";
  // A group that was entered before the attach comes before those with trampolines.
  EXPECT_TRUE(lacks_a_name("EETE", 1));
}

std::size_t plain(std::string_view letters) {
  return count_untrampolined(evaluators_of(kinds(letters)));
}

TEST(Merge, CountsUpToTheLastPlainEvaluator) {
  EXPECT_EQ(plain(""), 0U);
  EXPECT_EQ(plain("ET"), 0U);
  EXPECT_EQ(plain("EcE"), 2U);
  EXPECT_EQ(plain("ETcE"), 1U);
  EXPECT_EQ(plain("EETcE"), 3U);
}

// Frames of GROUPS, which are given outermost first: in "ab", a called b. The result is innermost
// first.
std::vector<sample::Frame> python(std::initializer_list<std::string_view> groups) {
  std::vector<sample::Frame> frames;
  for (const auto group : groups) {
    for (std::size_t i = 0; i < group.size(); ++i) {
      frames.push_back({.code = static_cast<std::uint64_t>(group[i]), .outermost = i == 0});
    }
  }
  std::ranges::reverse(frames);
  return frames;
}

struct Merged {
  std::string chain;
  std::size_t count = 0;
};

// CHAIN as above; Python functions by letter.
Merged merged(std::string_view chain, std::initializer_list<std::string_view> groups,
              bool one_is_hidden = false) {
  std::vector<std::uint64_t> addresses(chain.begin(), chain.end());
  std::vector<std::uint64_t> result;
  Merged text;
  auto evaluators = evaluators_of(kinds(chain));
  text.count = merge(
      addresses, one_is_hidden ? insert_sorted(evaluators, {.behind = 1}) : evaluators,
      python(groups), [](const sample::Frame& frame) { return frame.code; }, result);
  for (const auto address : result) {
    text.chain.push_back(static_cast<char>(address));
  }
  return text;
}

TEST(Merge, PutsTheGroupsBehindTheirEvaluators) {
  EXPECT_EQ(merged("cEcEc", {"ab", "xyz"}).chain, "cEzyxcEbac");
  EXPECT_EQ(merged("cEcEc", {"ab", "xyz"}).count, 5U);
  EXPECT_EQ(merged("E", {"a"}).chain, "Ea");
}

TEST(Merge, KeepsTheChainIfThereAreNoFrames) {
  EXPECT_EQ(merged("cEcEc", {}).chain, "cEcEc");
  EXPECT_EQ(merged("cEcEc", {}).count, 0U);
  EXPECT_EQ(merged("", {}).chain, "");
}

TEST(Merge, PairsFromTheOutermostEndOn) {
  EXPECT_EQ(merged("cEcEcE", {"ab"}).chain, "cEcEcEba") << "the inner frames are unknown";
}

TEST(Merge, LeavesOutGroupsWithoutAnEvaluator) {
  EXPECT_EQ(merged("cEc", {"ab", "xy", "z"}).chain, "cEbac");
  EXPECT_EQ(merged("ccc", {"ab"}).chain, "ccc");
}

// The trampoline already represents the group's outermost frame in the chain.
TEST(Merge, DoesNotDoubleFramesWithATrampoline) {
  EXPECT_EQ(merged("cETcE", {"a", "xy"}).chain, "cEyTcEa");
  EXPECT_EQ(merged("cETcE", {"a", "x"}).chain, "cETcEa");
  EXPECT_EQ(merged("cETcE", {"a", "x"}).count, 1U);
  EXPECT_EQ(merged("TcE", {"a", "xy"}).chain, "yTcEa");
}

TEST(Merge, PutsOneGroupWhereAnEvaluatorIsHidden) {
  EXPECT_EQ(merged("cccE", {"a", "xy"}, true).chain, "cyxccEa");
  EXPECT_EQ(merged("cccE", {"a", "xy", "z"}, true).chain, "cyxccEa") << "one, not two";
  EXPECT_EQ(merged("cccE", {"a"}, true).chain, "cccEa");
  EXPECT_EQ(merged("c", {"xy"}, true).chain, "cyx");
}

// The innermost function is the evaluator itself.
TEST(Merge, AHiddenOneIsBehindAnEvaluatorAtTheTop) {
  EXPECT_EQ(merged("EcE", {"a", "b", "z"}, true).chain, "EzbcEa");
}

bool pairs(std::string_view chain, std::initializer_list<std::string_view> groups) {
  return can_pair(evaluators_of(kinds(chain)), python(groups));
}

TEST(Merge, KnowsWhichWholeStacksCanBePaired) {
  EXPECT_TRUE(pairs("cEcEc", {"ab", "xyz"}));
  EXPECT_TRUE(pairs("EcEcE", {"ab", "xyz"})) << "the innermost evaluator is being entered or left";
  EXPECT_FALSE(pairs("cEc", {"ab", "xyz"}));
  EXPECT_FALSE(pairs("EcEcEc", {"ab"})) << "two evaluators too many: ambiguous";
  EXPECT_TRUE(pairs("ccc", {}));
}

TEST(Merge, AMissingEvaluatorIsPairedWhereItIs) {
  const auto merged_with = [](std::string_view chain, std::size_t behind) {
    const std::vector<std::uint64_t> addresses(chain.begin(), chain.end());
    std::vector<std::uint64_t> result;
    merge(
        addresses, insert_sorted(evaluators_of(kinds(chain)), {.behind = behind}),
        python({"a", "b", "x"}), [](const sample::Frame& frame) { return frame.code; }, result);
    return std::string(result.begin(), result.end());
  };
  EXPECT_EQ(merged_with("ccEcEc", 1), "cxcEbcEac");
  EXPECT_EQ(merged_with("ccEcEc", 4), "ccExcbEac");
  EXPECT_EQ(merged_with("ccEcEc", 6), "ccExcEbca");
}

// Evaluators whose groups are missing at the outer end have nothing to run.
TEST(Merge, GroupsThatLackOuterOnesAreOfTheInnermostEvaluators) {
  const auto all = evaluators_of(kinds("cEcEcEc"));
  const auto inner = pair_innermost(all, python({"ab", "x"}), {});
  ASSERT_EQ(inner.size(), 2U);
  EXPECT_EQ(inner[0].behind, 4U);
  EXPECT_EQ(inner[1].behind, 2U);
  EXPECT_THAT(pair_innermost(all, python({"a", "b", "x", "y"}), {}), IsEmpty());
  EXPECT_THAT(pair_innermost(all, python({"ab", "x"}), {0}), IsEmpty());
  EXPECT_THAT(pair_innermost(all, python({"ab", "x"}), {2}), IsEmpty()) << "between both";
  EXPECT_EQ(pair_innermost(all, python({"ab", "x"}), {4}).size(), 2U) << "outside of both";
}

// The trampoline's function is one of the missing ones.
TEST(Merge, AnOuterFrameThatIsMissingIsNoTrampolines) {
  const std::vector<std::uint64_t> chain{'E', 'T'};
  std::vector<std::uint64_t> result;
  merge(
      chain, evaluators_of(kinds("ET")), {{.code = 'x'}},
      [](const sample::Frame& frame) { return frame.code; }, result);
  EXPECT_THAT(result, ElementsAre('E', 'x', 'T'));
}

TEST(Merge, AppendsToWhatIsThere) {
  std::vector<std::uint64_t> result{7};
  const std::vector<std::uint64_t> chain{'E'};
  EXPECT_EQ(merge(
                chain, evaluators_of(kinds("E")), python({"a"}),
                [](const sample::Frame& frame) { return frame.code; }, result),
            1U);
  EXPECT_THAT(result, ElementsAre(7U, 'E', 'a'));
}

// The number of frames further in than those GROUPS that run outside the callchain. RUN_BY:
// letters.
std::size_t inside(std::string_view letters, std::initializer_list<std::string_view> groups,
                   std::string_view run_by = "") {
  auto frames = python(groups);
  for (auto& frame : frames) {
    frame.activation = frame.code;
  }
  const auto outside = groups_outside(evaluators_of(kinds(letters)), frames,
                                      std::vector<std::uint64_t>(run_by.begin(), run_by.end()));
  return outside == 0 ? frames.size() : first_frame_of(frames, outside - 1);
}

TEST(Merge, OutOfACallchainWithoutAnEndAreTheOuterGroups) {
  EXPECT_EQ(inside("cET", {"ab", "xy"}), 0U) << "all activations without trampoline are missing";
  EXPECT_EQ(inside("cETcE", {"ab", "xyz"}), 3U);
  EXPECT_EQ(inside("cEcE", {"ab", "xyz"}), 5U);
  EXPECT_EQ(inside("c", {"a"}), 0U);
  EXPECT_EQ(inside("cE", {}), 0U);
}

TEST(Merge, TheCStackTellsWhichGroupTheOutermostActivationRuns) {
  EXPECT_EQ(inside("cEcE", {"ab", "xyz", "q"}, "y"), 4U);
  EXPECT_EQ(inside("cE", {"ab", "xyz", "q"}, "b"), 6U);
  EXPECT_EQ(inside("cET", {"ab", "xyz", "q"}, "q"), 1U);
  EXPECT_EQ(inside("cEcE", {"ab", "xyz", "q"}, "?"), 4U) << "unknown: derived from the trampolines";
}

}  // namespace
}  // namespace pyinject::weave
