// Assigns returns to calls, and computes the times.
#include "calls/call_times.hpp"

#include "calls/call_report.hpp"
#include "calls/call_trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace pyinject::calls {
namespace {

using testing::HasSubstr;
using testing::Not;
using Kind = CallEvent::Kind;

// Events one nanosecond apart, unless a time is set.
class Told {
 public:
  explicit Told(std::vector<std::string> names) {
    for (auto& name : names) {
      trace_.functions.push_back({.name = std::move(name), .file = "app.py", .line = 0});
    }
  }
  Told& in(std::uint32_t tid) {
    tid_ = tid;
    return *this;
  }
  Told& at(std::uint64_t time) {
    time_ = time;
    return *this;
  }
  Told& enter(const std::string& name, std::int32_t line = 1) {
    return add(Kind::kEntry, name, line);
  }
  Told& leave(const std::string& name, std::int32_t line = 2) {
    return add(Kind::kReturn, name, line);
  }
  // The thread starts or exits.
  Told& thread(std::uint32_t tid) {
    trace_.events.push_back({.time = time_++, .pid = tid, .tid = tid, .kind = Kind::kThread});
    return *this;
  }
  Told& from(std::uint16_t source) {
    trace_.events.back().source = source;
    return *this;
  }

  CallTrace& trace() { return trace_; }
  std::vector<FunctionTimes> times() {
    pair_calls(trace_);
    CallTimes times{trace_};
    for (const auto& event : trace_.events) {
      (void)times.add(event);
    }
    return times.result();
  }

 private:
  Told& add(Kind kind, const std::string& name, std::int32_t line) {
    const auto found = std::ranges::find(trace_.functions, name, &Function::name);
    trace_.events.push_back(
        {.time = time_++,
         .pid = tid_,
         .tid = tid_,
         .function = static_cast<std::uint32_t>(found - trace_.functions.begin()),
         .line = line,
         .kind = kind});
    return *this;
  }

  CallTrace trace_;
  std::uint32_t tid_ = 1;
  std::uint64_t time_ = 0;
};

FunctionTimes of(Told& told, const std::string& name) {
  for (const auto& times : told.times()) {
    if (told.trace().functions[times.function].name == name) {
      return times;
    }
  }
  ADD_FAILURE() << name << " was not called";
  return {};
}

TEST(CallTrace, HasInclusiveAndOwnTimes) {
  Told told{{"outer", "inner"}};
  told.at(0).enter("outer").at(10).enter("inner").at(30).leave("inner").at(35).enter("inner");
  told.at(40).leave("inner").at(100).leave("outer");
  const auto outer = of(told, "outer");
  EXPECT_EQ(outer.calls, 1U);
  EXPECT_EQ(outer.returned, 1U);
  EXPECT_EQ(outer.inclusive, 100U);
  EXPECT_EQ(outer.own, 75U);
  const auto inner = of(told, "inner");
  EXPECT_EQ(inner.calls, 2U);
  EXPECT_EQ(inner.inclusive, 25U);
  EXPECT_EQ(inner.own, 25U);
  EXPECT_EQ(inner.longest, 20U);
  EXPECT_EQ(told.times().front().own, 75U) << "the largest own time first";
}

TEST(CallTrace, CountsRecursionOnceInInclusiveTime) {
  Told told{{"down"}};
  told.at(0).enter("down").at(10).enter("down").at(20).enter("down");
  told.at(30).leave("down").at(40).leave("down").at(50).leave("down");
  const auto down = of(told, "down");
  EXPECT_EQ(down.calls, 3U);
  EXPECT_EQ(down.inclusive, 50U);
  EXPECT_EQ(down.own, 50U);
}

TEST(CallTrace, SeparatesThreads) {
  Told told{{"one", "two"}};
  told.in(1).at(0).enter("one").in(2).at(5).enter("two").in(1).at(10).leave("one");
  told.in(2).at(100).leave("two");
  EXPECT_EQ(of(told, "one").own, 10U);
  EXPECT_EQ(of(told, "two").own, 95U);
}

TEST(CallTrace, HasNoTimesOfCallsThatCrossTheRecordingsEnds) {
  Told told{{"before", "within", "open"}};
  told.enter("within").leave("within").leave("before").enter("open").enter("within").leave(
      "within");
  const auto times = told.times();
  EXPECT_EQ(times.size(), 2U) << "'before' was called before the recording";
  EXPECT_EQ(of(told, "within").returned, 2U);
  EXPECT_EQ(of(told, "open").calls, 1U);
  EXPECT_EQ(of(told, "open").returned, 0U);
  EXPECT_EQ(of(told, "open").own, 0U);
}

// CPython 3.15 enters a generator when it is created, without a return.
TEST(CallTrace, SeparatesTheCallersOfGenerators) {
  Told told{{"caller", "generator", "other"}};
  told.at(0).enter("caller").at(10).enter("generator", 1);  // created
  told.at(20).enter("other").at(50).leave("other");
  told.at(60).enter("generator", 1).at(70).leave("generator", 3);  // a yield in line 3
  told.at(80).enter("generator", 3).at(95).leave("generator", 4);
  told.at(100).leave("caller");
  const auto caller = of(told, "caller");
  EXPECT_EQ(caller.inclusive, 100U);
  EXPECT_EQ(caller.own, 45U);
  const auto generator = of(told, "generator");
  EXPECT_EQ(generator.calls, 3U);
  EXPECT_EQ(generator.returned, 2U);
  EXPECT_EQ(generator.inclusive, 25U);
  EXPECT_EQ(told.trace().functions[generator.function].line, 1);
}

// throw() causes a return without an entry, as does close() of a generator that handles it.
TEST(CallTrace, KeepsCallsAroundAClosedGenerator) {
  Told told{{"outer", "generator", "closes"}};
  told.at(0).enter("outer");
  told.enter("generator", 1).enter("generator", 1).leave("generator", 3).enter("generator", 3);
  told.leave("generator", 3).at(10).enter("closes").at(15).leave("generator", 3).at(20);
  told.leave("closes").at(30).leave("outer");
  EXPECT_EQ(of(told, "closes").inclusive, 10U);
  EXPECT_EQ(of(told, "outer").inclusive, 30U);
}

TEST(CallTrace, EndsAGeneratorBeforeItIsClosedByItsMaker) {
  Told told{{"first", "rows", "slow"}};
  told.at(0).enter("first").at(10).enter("rows", 10);  // created
  told.at(20).enter("rows", 10).at(25).leave("rows", 11).at(30).enter("rows", 11);
  told.at(35).leave("rows", 12).at(40).enter("slow").at(90).leave("slow");
  told.at(95).leave("rows", 13).at(100).leave("first");  // closed: its "finally" is in line 13
  const auto rows = of(told, "rows");
  EXPECT_EQ(rows.calls, 3U);
  EXPECT_EQ(rows.returned, 2U);
  EXPECT_EQ(rows.inclusive, 10U);
  EXPECT_EQ(rows.longest, 5U);
  EXPECT_EQ(of(told, "slow").inclusive, 50U);
  EXPECT_EQ(of(told, "first").own, 40U);
}

TEST(CallTrace, FollowsGeneratorsThatAreLeftEarly) {
  Told told{{"first", "rows"}};
  told.at(0).enter("first");
  for (std::uint64_t i = 1; i < 10; ++i) {
    told.at(100 * i).enter("rows", 10).enter("rows", 10).leave("rows", 11);
    told.enter("rows", 11).leave("rows", 11).at(100 * i + 50).leave("rows", 13);
  }
  told.at(1000).leave("first");
  EXPECT_EQ(of(told, "rows").returned, 18U);
  EXPECT_EQ(of(told, "rows").inclusive, 18U);
}

// for x in walk(child): yield x
TEST(CallTrace, SeparatesRecursiveGenerators) {
  Told told{{"walk"}};
  told.at(0).enter("walk", 10).at(10).enter("walk", 10);     // created, started
  told.at(20).enter("walk", 10).at(30).enter("walk", 10);    // the inner one
  told.at(40).leave("walk", 13).at(50).leave("walk", 12);    // its yield, passed on
  told.at(100).enter("walk", 12).at(110).enter("walk", 13);  // next
  told.at(120).leave("walk", 14).at(130).leave("walk", 14);  // both end
  const auto walk = of(told, "walk");
  EXPECT_EQ(walk.calls, 6U);
  EXPECT_EQ(walk.returned, 4U);
  EXPECT_EQ(walk.inclusive, 70U);
  EXPECT_EQ(walk.longest, 40U);
}

TEST(CallTrace, DistinguishesFunctionsOfOneNameByLine) {
  Told told{{"__init__"}};
  told.at(0).enter("__init__", 10).at(5).enter("__init__", 20).at(7).leave("__init__", 21);
  told.at(20).leave("__init__", 12);
  const auto times = told.times();
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(told.trace().functions[times[0].function].line, 10);
  EXPECT_EQ(times[0].own, 18U);
  EXPECT_EQ(told.trace().functions[times[1].function].line, 20);
  EXPECT_EQ(times[1].own, 2U);
}

// def name(self): return self.first
// def name(self): return self.second
TEST(CallTrace, DistinguishesFunctionsOnOneLine) {
  for (const auto* const name : {"name", "<lambda>"}) {
    Told told{{name}};
    told.leave(name, 20);  // entered before the recording
    for (int i = 0; i < 3; ++i) {
      told.enter(name, 10).leave(name, 10).enter(name, 20).leave(name, 20);
    }
    told.enter(name, 20).enter(name, 10).leave(name, 10).leave(name, 20);
    const auto times = told.times();
    ASSERT_EQ(times.size(), 2U) << name;
    EXPECT_EQ(told.trace().functions[times[0].function].line, 20);
    EXPECT_EQ(told.trace().functions[times[1].function].line, 10);
    EXPECT_EQ(times[0].calls, 4U);
    EXPECT_EQ(times[1].calls, 4U);
  }
}

TEST(CallTrace, DistinguishesNestedLambdas) {
  Told told{{"<lambda>"}};
  told.enter("<lambda>", 10).enter("<lambda>", 11).leave("<lambda>", 11).leave("<lambda>", 11);
  const auto times = told.times();
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(times[0].calls, 1U);
  EXPECT_EQ(times[1].calls, 1U);
}

// It was created before the recording: its first line is unknown.
TEST(CallTrace, HasNoLineOfCoroutinesThatAlreadyRan) {
  Told told{{"serve", "work"}};
  told.enter("serve", 12).leave("serve", 14).enter("serve", 14).leave("serve", 12);
  told.enter("work", 30).leave("work", 31);
  const auto serve = of(told, "serve");
  EXPECT_EQ(serve.calls, 2U);
  EXPECT_EQ(told.trace().functions[serve.function].line, 0);
  EXPECT_EQ(told.trace().functions[of(told, "work").function].line, 30);
}

TEST(CallTrace, CountsOneReturnOfAFork) {
  Told told{{"forks", "work"}};
  told.in(1).at(0).enter("forks").at(10).thread(2);
  told.in(2).at(20).enter("work").at(25).leave("work").at(30).leave("forks");
  told.in(1).at(40).leave("forks");
  const auto forks = of(told, "forks");
  EXPECT_EQ(forks.calls, 1U);
  EXPECT_EQ(forks.returned, 1U);
  EXPECT_EQ(forks.inclusive, 40U);
  EXPECT_EQ(of(told, "work").inclusive, 5U);
}

TEST(CallTrace, ReusedTidIsANewThread) {
  Told told{{"earlier", "work"}};
  told.in(2).enter("earlier").thread(2).at(10).enter("work").at(15).leave("work");
  told.leave("earlier");
  EXPECT_EQ(of(told, "earlier").returned, 0U);
  EXPECT_EQ(of(told, "work").inclusive, 5U);
}

TEST(CallTrace, EndsCallsWithTheirThread) {
  Told told{{"open", "work"}};
  told.in(2).enter("open").thread(2).leave("open").enter("work").leave("work");
  EXPECT_EQ(of(told, "open").returned, 0U);
  EXPECT_EQ(of(told, "work").returned, 1U);
}

TEST(CallTrace, MergesTwoNamesOfAFile) {
  Told told{{"down"}};
  for (const auto source : {0, 1, 0, 1}) {
    told.enter("down").from(static_cast<std::uint16_t>(source));
  }
  for (const auto source : {0, 1, 0, 1}) {
    told.leave("down").from(static_cast<std::uint16_t>(source));
  }
  drop_repeated(told.trace());
  EXPECT_EQ(of(told, "down").calls, 2U);
  EXPECT_EQ(of(told, "down").returned, 2U);
}

// `perf record` sometimes writes the last records of one pass over its buffer twice.
TEST(CallTrace, DropsRecordsThatPerfWroteTwice) {
  Told told{{"leaf"}};
  told.at(10).enter("leaf").at(10).enter("leaf").at(12).leave("leaf").at(12).leave("leaf");
  told.at(14).enter("leaf").leave("leaf");
  drop_repeated(told.trace());
  EXPECT_EQ(of(told, "leaf").calls, 2U);
  EXPECT_EQ(of(told, "leaf").returned, 2U);
}

TEST(CallTrace, KeepsCallsOfAFunctionByItself) {
  Told told{{"down"}};
  told.enter("down").enter("down").enter("down").leave("down").leave("down").leave("down");
  drop_repeated(told.trace());
  EXPECT_EQ(of(told, "down").calls, 3U);
}

TEST(CallTrace, KeepsCallsOfTwoFiles) {
  Told told{{"one", "two"}};
  told.in(1).enter("one").from(0).in(2).enter("one").from(1).in(1).leave("one").from(0);
  told.in(2).leave("one").from(1).enter("two").from(1);
  drop_repeated(told.trace());
  EXPECT_EQ(told.trace().events.size(), 5U);
}

TEST(CallReports, AreSafeForATerminal) {
  Told told{{"evil\x1b[31m"}};
  told.trace().functions[0].file = "line\nbreak";
  told.enter("evil\x1b[31m").leave("evil\x1b[31m");
  const auto times = told.times();
  EXPECT_THAT(to_table(told.trace(), times), HasSubstr("evil\\x1b[31m  line\\x0abreak:1"));
  std::string text;
  write_timeline(told.trace(), false, [&](std::string_view piece) { text += piece; });
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_EQ(std::ranges::count(text, '\n'), 2);
}

TEST(CallReports, AreJson) {
  Told told{{"name\xff"}};
  told.at(100).enter("name\xff").at(150).leave("name\xff", 7);
  told.trace().lost = 3;
  const auto all = nlohmann::json::parse(to_json(told.trace(), told.times()));
  EXPECT_EQ(all.at("schema"), 1);
  EXPECT_EQ(all.at("calls"), 1);
  EXPECT_EQ(all.at("lost"), 3);
  EXPECT_EQ(all.at("functions").at(0).at("own_nanoseconds"), 50);
  std::string text;
  write_timeline(told.trace(), true, [&](std::string_view piece) { text += piece; });
  const auto second = nlohmann::json::parse(text.substr(text.find('\n') + 1));
  EXPECT_EQ(second.at("event"), "return");
  EXPECT_EQ(second.at("line"), 7);
  EXPECT_EQ(second.at("begins"), 1);
  EXPECT_EQ(second.at("nanoseconds"), 50);
}

}  // namespace
}  // namespace pyinject::calls
