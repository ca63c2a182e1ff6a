#include "weave/frame_history.hpp"

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

constexpr std::uint32_t kPid = 10;
constexpr std::uint32_t kTid = 12;

// A frame for each letter, outermost first; an upper-case letter starts a group. Its code is the
// lower-case letter, its address 16 times that.
std::vector<sample::Frame> frames(std::string_view letters) {
  std::vector<sample::Frame> result;
  for (const char letter : letters) {
    const bool outermost = letter >= 'A' && letter <= 'Z';
    const auto code = static_cast<std::uint64_t>(outermost ? letter - 'A' + 'a' : letter);
    result.push_back({.activation = 16 * code, .code = code, .outermost = outermost});
  }
  std::ranges::reverse(result);
  return result;
}

class FrameHistoryTest : public testing::Test {
 protected:
  void begin(std::string_view letters, bool first = true) {
    letters_ = letters;
    history_.begin(kPid, kTid, frames(letters), first);
  }
  void observe(std::uint64_t time, std::string_view letters) {
    history_.observe(kPid, kTid, time, frames(letters));
  }
  void observe_outer(std::uint64_t time, std::string_view letters) {
    history_.observe(kPid, kTid, time, frames(letters), true);
  }
  void extend(std::uint64_t time, std::string_view letters) {
    history_.extend(kPid, kTid, time, frames(letters));
  }
  // LINES of the outermost frames, outermost first.
  void observe_at(std::uint64_t time, std::initializer_list<std::uint32_t> lines) {
    auto seen = frames(letters_.substr(0, lines.size()));
    auto frame = seen.rbegin();
    for (const auto line : lines) {
      (frame++)->line = line;
    }
    history_.observe(kPid, kTid, time, seen);
  }
  [[nodiscard]] std::vector<std::uint32_t> lines_at(std::uint64_t time, std::size_t plain = 1) {
    const auto found =
        history_.at({.pid = kPid, .tid = kTid, .time = time, .evaluators = plain, .plain = plain});
    std::vector<std::uint32_t> lines;
    for (const auto& frame : found.frames) {
      lines.insert(lines.begin(), frame.line);
    }
    return lines;
  }
  [[nodiscard]] std::string at(StackQuery query) {
    query.pid = kPid;
    query.tid = kTid;
    const auto found = history_.at(query).frames;
    std::string letters;
    for (const auto& frame : found) {
      const auto letter = static_cast<char>(frame.code);
      letters.insert(letters.begin(),
                     frame.outermost ? static_cast<char>(letter - 'a' + 'A') : letter);
    }
    return letters;
  }
  // The frames for a callchain with PLAIN evaluators, none of them called through a trampoline.
  [[nodiscard]] std::string at(std::uint64_t time, std::size_t plain) {
    return at(StackQuery{.time = time, .evaluators = plain, .plain = plain});
  }
  FrameHistory history_;
  std::string_view letters_;
};

TEST_F(FrameHistoryTest, KnowsNothingOfUnknownThreads) {
  EXPECT_TRUE(history_.empty());
  EXPECT_EQ(at(1, 1), "");
  observe(1, "Ab");
  EXPECT_TRUE(history_.empty()) << "only frames from before the activation count";
  begin("Ab");
  EXPECT_FALSE(history_.empty());
  EXPECT_THAT(history_.at({.pid = kPid, .tid = kTid + 1, .evaluators = 1, .plain = 1}).frames,
              IsEmpty());
  EXPECT_THAT(history_.at({.pid = kTid, .tid = kTid, .evaluators = 1, .plain = 1}).frames,
              IsEmpty());
}

TEST_F(FrameHistoryTest, KeepsAllFramesUntilTheFirstObservation) {
  begin("AbC");
  EXPECT_EQ(at(0, 2), "AbC");
  EXPECT_EQ(at(1'000'000, 2), "AbC");
}

TEST_F(FrameHistoryTest, TheNearestObservationHolds) {
  begin("Abcd");
  observe(100, "Abcd");
  observe(200, "Ab");
  EXPECT_EQ(at(1, 1), "Abcd");
  EXPECT_EQ(at(149, 1), "Abcd");
  EXPECT_EQ(at(151, 1), "Ab");
  EXPECT_EQ(at(200, 1), "Ab");
  EXPECT_EQ(at(10'000, 1), "Ab");
}

// b returned and was called again: it now has a trampoline, or its caller has.
TEST_F(FrameHistoryTest, DropsReturnedFramesForGood) {
  begin("Abc");
  observe(100, "A");
  observe(200, "Abc");
  EXPECT_EQ(at(200, 1), "A");
  EXPECT_EQ(at(300, 1), "A");
}

// The interpreter reuses a frame's memory.
TEST_F(FrameHistoryTest, AReusedAddressIsNotTheOldFrame) {
  begin("Abc");
  auto other = frames("Abc");
  other[0].code = 'x';
  history_.observe(kPid, kTid, 100, other);
  EXPECT_EQ(at(100, 1), "Ab");
  auto of_a_group_of_its_own = frames("Ab");
  of_a_group_of_its_own[0].outermost = true;
  history_.observe(kPid, kTid, 200, of_a_group_of_its_own);
  EXPECT_EQ(at(200, 1), "A");
}

TEST_F(FrameHistoryTest, FramesEnteredSinceArePassedOver) {
  begin("Ab");
  observe(100, "AbxyZ");
  EXPECT_EQ(at(100, 1), "Ab");
}

// A loop from before the activation continues at other lines.
TEST_F(FrameHistoryTest, KeepsFramesThatAnOuterPartDoesNotShow) {
  begin("AbC");
  observe_outer(100, "A");
  EXPECT_EQ(at(200, 2), "AbC");
  observe(300, "A");
  EXPECT_EQ(at(300, 1), "A");
}

TEST_F(FrameHistoryTest, ExtendsAFirstStackOfWhichOnlyTheOuterPartWasKnown) {
  begin("A");
  observe_outer(100, "A");
  extend(200, "AbC");
  EXPECT_EQ(at(50, 2), "AbC");
  EXPECT_EQ(at(100, 2), "AbC");
  EXPECT_EQ(at(100, 1), "Ab") << "C has a trampoline: it was entered later";
  observe(300, "A");
  EXPECT_EQ(at(300, 1), "A");
}

TEST_F(FrameHistoryTest, DoesNotExtendAStackWhoseFirstFramesHaveReturned) {
  begin("Ab");
  observe(50, "Ab");
  extend(100, "Axy");
  EXPECT_EQ(at(50, 1), "Ab");
  EXPECT_EQ(at(100, 1), "A");
  extend(200, "Ab");
  EXPECT_EQ(at(200, 1), "A");
}

TEST_F(FrameHistoryTest, TheLineIsThatOfTheNearestLook) {
  begin("Ab");
  observe_at(100, {5, 10});
  observe_at(200, {5, 10});
  observe_at(300, {5, 10});
  observe_at(400, {5, 11});
  observe_at(500, {5, 11});
  observe_at(600, {5, 11});
  EXPECT_THAT(lines_at(1), ElementsAre(5, 10)) << "only the first observation has a time";
  EXPECT_THAT(lines_at(250), ElementsAre(5, 10));
  EXPECT_THAT(lines_at(349), ElementsAre(5, 10));
  EXPECT_THAT(lines_at(351), ElementsAre(5, 11));
  EXPECT_THAT(lines_at(10'000), ElementsAre(5, 11));
}

TEST_F(FrameHistoryTest, LinesComeAgain) {
  begin("A");
  for (std::uint64_t time = 100; time <= 1000; time += 100) {
    observe_at(time, {time % 200 == 0 ? 20U : 10U});
  }
  EXPECT_THAT(lines_at(490), ElementsAre(10));
  EXPECT_THAT(lines_at(610), ElementsAre(20));
  EXPECT_THAT(lines_at(710), ElementsAre(10));
}

// For frames that returned between two observations, the last observed line is used.
TEST_F(FrameHistoryTest, TheLineIsThatOfTheLookThatFits) {
  begin("AbC");
  observe_at(100, {5, 10, 15});
  observe_at(200, {6, 11});
  EXPECT_THAT(lines_at(190, 2), ElementsAre(5, 10, 15)) << "the later observation does not fit";
  EXPECT_THAT(lines_at(110, 1), ElementsAre(6, 11)) << "the earlier observation does not fit";
}

TEST_F(FrameHistoryTest, KeepsTheHighestLine) {
  begin("A");
  history_.name(kPid, {.number = 'a', .qualname = "f", .file = "a.py", .first_line = 1});
  observe_at(100, {10});
  observe_at(200, {30});
  observe_at(300, {20});
  std::vector<std::uint32_t> last;
  history_.each_name([&](const sample::Code&, std::uint32_t line) { last.push_back(line); });
  EXPECT_THAT(last, ElementsAre(30));
}

// The callchain has a different number of activations than the nearest observation.
TEST_F(FrameHistoryTest, TheCallchainSaysHowManyGroupsThereAre) {
  begin("AbCd");
  observe(100, "AbCd");
  observe(200, "Ab");
  EXPECT_EQ(at(110, 1), "Ab") << "the other observation fits";
  EXPECT_EQ(at(190, 2), "AbCd") << "the other observation fits";
  EXPECT_EQ(at(300, 1), "Ab");
}

TEST_F(FrameHistoryTest, CutsWhatDoesNotFit) {
  begin("AbCdEf");
  observe(100, "AbCdEf");
  observe(200, "AbCdEf");
  EXPECT_EQ(at(150, 2), "AbCd");
  EXPECT_EQ(at(150, 1), "Ab");
  EXPECT_EQ(at(150, 0), "");
}

// Evaluators inside the last plain one run frames that were entered later, unless the trampoline
// had been on before.
TEST_F(FrameHistoryTest, OnlyAtTheFirstActivationNoFrameOfBeforeHasATrampoline) {
  const StackQuery query{.time = 1, .evaluators = 3, .plain = 1};
  begin("AbCdEf", true);
  EXPECT_EQ(at(query), "Ab");
  begin("AbCdEf", false);
  EXPECT_EQ(at(query), "AbCdEf");
}

// The group "Cd" has returned and "Ab" has called another function through a trampoline: the number
// of activations is the same as before.
TEST_F(FrameHistoryTest, ATrampolineOfAnotherFunctionShowsThatTheGroupHasReturned) {
  begin("AbCdEf", false);
  history_.name(kPid, {.number = 'c', .qualname = "c", .file = "c.py"});
  observe(100, "AbCdEf");
  observe(200, "A");
  StackQuery query{.time = 101, .evaluators = 3, .plain = 1};
  query.trampoline_of = [](std::size_t number) { return number == 1 ? "py::x:x.py" : ""; };
  EXPECT_EQ(at(query), "A");
  query.trampoline_of = [](std::size_t number) { return number == 1 ? "py::c:c.py" : ""; };
  EXPECT_EQ(at(query), "AbCdEf");
  query.trampoline_of = [](std::size_t number) { return number == 2 ? "py::x:x.py" : ""; };
  EXPECT_EQ(at(query), "AbCdEf") << "the function's name is unknown";
  query.time = 99;
  query.trampoline_of = [](std::size_t) { return "py::x:x.py"; };
  EXPECT_EQ(at(query), "AbCdEf") << "two observations agree";
}

// Neither observation fits: keep the groups that may still exist.
TEST_F(FrameHistoryTest, GroupsBehindAnotherFunctionsTrampolineAreCut) {
  begin("AbCdEf", false);
  history_.name(kPid, {.number = 'c', .qualname = "c", .file = "c.py"});
  observe(100, "AbCdEf");
  const StackQuery query{
      .time = 300, .evaluators = 3, .plain = 1, .trampoline_of = [](std::size_t number) {
        return number == 1 ? "py::x:x.py" : "";
      }};
  EXPECT_EQ(at(query), "Ab");
}

TEST_F(FrameHistoryTest, OneGroupMoreMayBeHidden) {
  begin("AbCdEf");
  StackQuery query{.time = 1, .evaluators = 1, .plain = 1, .one_may_be_hidden = true};
  EXPECT_EQ(at(query), "AbCd");
  query.one_may_be_hidden = false;
  EXPECT_EQ(at(query), "Ab");
}

// Between two observations, the C stack shows which frame is running.
TEST_F(FrameHistoryTest, TheFrameThatRunsIsLookedFor) {
  begin("Abcde");
  observe(100, "Abcde");
  observe(200, "A");
  StackQuery query{.time = 199, .evaluators = 1, .plain = 1};
  std::vector<std::size_t> asked;
  query.frames_of = [&](std::size_t number) {
    asked.push_back(number);
    return std::vector<std::uint64_t>{1, 16 * 'c', 2};
  };
  EXPECT_EQ(at(query), "Abc");
  EXPECT_THAT(asked, ElementsAre(0U));
  query.frames_of = [](std::size_t) { return std::vector<std::uint64_t>{3, 4}; };
  EXPECT_EQ(at(query), "A") << "no frame found: the nearest observation";
  query.frames_of = [](std::size_t) { return std::vector<std::uint64_t>{}; };
  EXPECT_EQ(at(query), "A");
}

TEST_F(FrameHistoryTest, TheFrameIsLookedForInTheInnermostGroupOnly) {
  begin("AbCde");
  observe(100, "AbCde");
  observe(200, "A");
  StackQuery query{.time = 101, .evaluators = 2, .plain = 2};
  query.frames_of = [](std::size_t number) {
    EXPECT_EQ(number, 1U);
    return std::vector<std::uint64_t>{16 * 'b', 16 * 'd'};
  };
  EXPECT_EQ(at(query), "AbCd");
}

TEST_F(FrameHistoryTest, LooksForNothingWhereTwoObservationsAgree) {
  begin("Abc");
  observe(100, "Ab");
  observe(200, "Ab");
  observe(300, "Ab");
  StackQuery query{.time = 250, .evaluators = 1, .plain = 1};
  query.frames_of = [](std::size_t) {
    ADD_FAILURE() << "asked";
    return std::vector<std::uint64_t>{};
  };
  EXPECT_EQ(at(query), "Ab");
}

TEST_F(FrameHistoryTest, ALongTimeWithoutChangeIsOneEntry) {
  begin("Abc");
  for (std::uint64_t time = 100; time <= 10'000; time += 100) {
    observe(time, "Ab");
  }
  observe(20'000, "A");
  EXPECT_EQ(at(14'000, 1), "Ab");
  EXPECT_EQ(at(16'000, 1), "A");
}

TEST_F(FrameHistoryTest, ANewActivationStartsAnew) {
  begin("Abc");
  observe(100, "A");
  begin("Abcd", false);
  EXPECT_EQ(at(100, 1), "Abcd");
}

TEST_F(FrameHistoryTest, FramesAreThoseOfTheProgramThatRan) {
  history_.begin(kPid, kTid, frames("Ab"), true, 100);
  history_.begin(kPid, kTid, frames("Cd"), true, 300);  // after an exec at 200
  const auto at_of = [this](std::uint64_t time, std::uint64_t program_since) {
    return at(
        StackQuery{.time = time, .program_since = program_since, .evaluators = 1, .plain = 1});
  };
  EXPECT_EQ(at_of(99, 0), "");
  EXPECT_EQ(at_of(150, 0), "Ab");
  EXPECT_EQ(at_of(250, 200), "") << "before the second attach";
  EXPECT_EQ(at_of(350, 200), "Cd");
}

TEST_F(FrameHistoryTest, KnowsThreadsThatMayHaveFramesLeft) {
  begin("Ab");
  history_.begin(kPid, kTid + 1, frames("A"), true);
  history_.begin(kPid + 1, 99, frames("A"), true);
  EXPECT_THAT(history_.threads(kPid), ElementsAre(kTid, kTid + 1));
  observe(100, "A");
  EXPECT_THAT(history_.threads(kPid), ElementsAre(kTid, kTid + 1));
  observe(200, "");
  EXPECT_THAT(history_.threads(kPid), ElementsAre(kTid + 1));
  EXPECT_THAT(history_.threads(kPid + 1), ElementsAre(99U));
  EXPECT_THAT(history_.threads(1), IsEmpty());
}

TEST_F(FrameHistoryTest, NamesAreOfOneProcess) {
  history_.name(kPid, {.number = 'a', .qualname = "f", .file = "a.py"});
  ASSERT_NE(history_.name(kPid, 'a'), nullptr);
  EXPECT_EQ(history_.name(kPid, 'a')->qualname, "f");
  EXPECT_EQ(history_.name(kPid, 'b'), nullptr);
  EXPECT_EQ(history_.name(kPid + 1, 'a'), nullptr);
}

// A query of a greenlet: activation N runs the frames with the addresses of LETTERS[N].
class FrameHistoryOfGreenlets : public FrameHistoryTest {
 protected:
  FrameHistoryOfGreenlets() { history_.expect_greenlets(kPid); }
  [[nodiscard]] std::string at_greenlet(std::string_view letters, bool in_greenlet = true) {
    return at({.time = 50,
               .evaluators = letters.size(),
               .plain = letters.size(),
               .greenlets = true,
               .in_greenlet = in_greenlet,
               .frames_of = [letters](std::size_t n) {
                 return std::vector<std::uint64_t>{1, 16 * static_cast<std::uint64_t>(letters[n])};
               }});
  }
};

TEST_F(FrameHistoryOfGreenlets, HaveOnlyWhatIsProven) {
  begin("AbCd");
  EXPECT_EQ(at_greenlet("bc"), "AbC");
  EXPECT_EQ(at_greenlet("b"), "Ab");
  EXPECT_EQ(at_greenlet("ax"), "A");
  EXPECT_EQ(at_greenlet("x"), "");
}

TEST_F(FrameHistoryOfGreenlets, AreKeptApart) {
  begin("AbC");
  observe(10, "XyZ");
  observe(20, "Pq");
  EXPECT_EQ(at_greenlet("bc"), "AbC") << "has not returned";
  EXPECT_EQ(at_greenlet("yz"), "XyZ");
  EXPECT_EQ(at_greenlet("p"), "P");
}

// Which frames share an activation is known by those that activations run now.
TEST_F(FrameHistoryOfGreenlets, AreKnownWhileTheyAreSuspended) {
  begin("AbC");
  history_.keep_suspended(kPid, kTid, frames("wxyz"));
  EXPECT_EQ(at_greenlet("xz"), "WxYz");
  EXPECT_EQ(at_greenlet("y"), "Wxy");
  EXPECT_EQ(at_greenlet("xq"), "Wx");
  EXPECT_EQ(at_greenlet("bc"), "AbC");
  EXPECT_EQ(at_greenlet("q"), "");
}

TEST_F(FrameHistoryOfGreenlets, TheThreadItselfIsKnownByItsFirstFunction) {
  history_.name(kPid, {.number = 'm', .qualname = "<module>", .file = "f.py", .first_line = 1});
  begin("Ab");
  EXPECT_EQ(at_greenlet("?", false), "") << "of a greenlet";
  observe(10, "Mn");
  EXPECT_EQ(at_greenlet("?", false), "Mn");
  EXPECT_EQ(at_greenlet("?", true), "");
  EXPECT_EQ(at_greenlet("b", true), "Ab");
  observe(60, "Xy");
  EXPECT_EQ(at_greenlet("?", false), "Mn");
}

TEST_F(FrameHistoryOfGreenlets, AnotherThreadsAreNotExpected) {
  begin("Ab");
  EXPECT_TRUE(history_.is_other(kPid, kTid, frames("Xy")));
  EXPECT_FALSE(history_.is_other(kPid, kTid, frames("Ax")));
  EXPECT_FALSE(history_.is_other(kPid, kTid + 1, frames("Xy")));
  EXPECT_FALSE(history_.is_other(kPid, kTid, {}));
}

}  // namespace
}  // namespace pyinject::weave
