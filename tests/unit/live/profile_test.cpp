#include "live/profile.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace pyinject::live {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

sample::Stack stack_of(std::vector<sample::Frame> frames, std::uint32_t tid = 1) {
  sample::Stack stack;
  stack.pid = 1;
  stack.tid = tid;
  stack.frames = std::move(frames);
  return stack;
}

// A hundred samples a second.
class LiveProfile : public testing::Test {
 protected:
  LiveProfile() {
    profile.name({.number = 1, .qualname = "inner", .file = "a.py", .first_line = 10});
    profile.name({.number = 2, .qualname = "outer", .file = "b.py", .first_line = 20});
  }
  void add(const sample::Stack& stack, int times) {
    for (int i = 0; i < times; ++i) {
      profile.add(stack);
    }
  }
  Profile profile{milliseconds{10}};
};

TEST_F(LiveProfile, CountsFunctionsOnceForEachSample) {
  add(stack_of({{.code = 1, .line = 11}, {.code = 2, .line = 21}, {.code = 2, .line = 22}}), 30);
  add(stack_of({{.code = 2, .line = 23}}), 20);
  profile.end_interval(seconds{1});
  const auto table = profile.table({});
  ASSERT_THAT(table.rows, SizeIs(2));
  EXPECT_EQ(table.rows[0].name, "inner");
  EXPECT_EQ(table.rows[0].place, "a.py");
  EXPECT_THAT(table.rows[0].self, DoubleNear(0.3, 1e-9));
  EXPECT_THAT(table.rows[0].total, DoubleNear(0.3, 1e-9));
  EXPECT_EQ(table.rows[1].name, "outer");
  EXPECT_THAT(table.rows[1].self, DoubleNear(0.2, 1e-9));
  EXPECT_THAT(table.rows[1].total, DoubleNear(0.5, 1e-9));
  EXPECT_EQ(table.rows[1].total_time, milliseconds{500});
  EXPECT_THAT(profile.share(), DoubleNear(0.5, 1e-9));
}

// More intervals than the history has.
TEST_F(LiveProfile, HasTheSharesOfAllTheTimeIfAsked) {
  auto held = stack_of({{.code = 1, .line = 11}});
  held.gil = sample::Gil::kHeld;
  add(held, 40);
  profile.add_wait(stack_of({{.code = 2, .line = 22}}), Use::kSleep, milliseconds{3000});
  for (std::size_t i = 0; i < 2 * kHistory; ++i) {
    profile.end_interval(milliseconds{500});
  }
  EXPECT_THAT(profile.share(), DoubleNear(0, 1e-9)) << "long ago";
  profile.share_since_start();
  EXPECT_THAT(profile.share(), DoubleNear(0.02, 1e-9));
  EXPECT_THAT(profile.gil_share(), DoubleNear(0.02, 1e-9));
  const auto table = profile.table({});
  ASSERT_THAT(table.rows, SizeIs(2));
  EXPECT_THAT(table.rows[0].self, DoubleNear(0.02, 1e-9));
  EXPECT_THAT(table.rows[0].gil, DoubleNear(0.02, 1e-9));
  EXPECT_THAT(table.rows[1].wait, DoubleNear(0.15, 1e-9));
  EXPECT_THAT(table.rows[1].waits.at(static_cast<std::size_t>(Use::kSleep)),
              DoubleNear(0.15, 1e-6));
}

TEST_F(LiveProfile, AddsUpTheInstructionsOfACFunction) {
  constexpr std::uint64_t kProgram = std::uint64_t{1} << kHalf;
  profile.name_c_function(kProgram + 1, "deflate in libz.so.1");
  profile.name_c_function(kProgram + 2, "deflate in libz.so.1");
  profile.name_c_function(kProgram + 3, "memcpy in libc.so.6");
  const auto stack = stack_of({{.code = 1, .line = 11}, {.code = 2, .line = 21}});
  profile.add(stack, 20, Use::kC, false, kProgram + 2);
  profile.add(stack, 10, Use::kC, false, kProgram + 1);
  profile.add(stack_of({{.code = 2, .line = 21}}), 5, Use::kC, false, kProgram + 3);
  profile.add(stack, 40, Use::kPython);
  profile.add(stack, 1, Use::kC);
  profile.end_interval(seconds{1});
  const auto rows = profile.table({.view = View::kC}).rows;
  ASSERT_THAT(rows, SizeIs(3));
  EXPECT_EQ(rows[0].name, "deflate in libz.so.1");
  EXPECT_THAT(rows[0].self, DoubleNear(0.3, 1e-9));
  EXPECT_THAT(rows[0].history, ElementsAre(DoubleNear(0.3, 1e-9)));
  EXPECT_THAT(profile.stack_of(View::kC, rows[0].id),
              ElementsAre(Place{"inner", "a.py", 11}, Place{"outer", "b.py", 21}));
  EXPECT_EQ(rows[1].name, "memcpy in libc.so.6");
  EXPECT_EQ(rows[2].name, "[unknown]");
  EXPECT_THAT(profile.table({.view = View::kC, .filter = "memcpy"}).rows, SizeIs(1));
}

TEST_F(LiveProfile, DividesTheTimeByUse) {
  const auto inner = stack_of({{.code = 1, .line = 11}, {.code = 2, .line = 21}});
  profile.add(inner, 30, Use::kPython);
  profile.add(inner, 10, Use::kC);
  profile.end_interval(seconds{1});
  profile.add(stack_of({{.code = 2, .line = 21}}), 20, Use::kKernel);
  profile.end_interval(seconds{1});
  EXPECT_THAT(profile.uses(), ElementsAre(0.15, 0.05, 0, 0, 0.1, 0));
  const auto rows = profile.table({}).rows;
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_THAT(rows[0].uses, ElementsAre(0.15, 0.05, 0, 0, 0, 0));
  EXPECT_THAT(rows[1].uses, ElementsAre(0, 0, 0, 0, 0.1, 0)) << "without the functions it calls";
  for (std::size_t i = 0; i < kHistory; ++i) {
    profile.end_interval(seconds{1});
  }
  EXPECT_THAT(profile.uses(), ElementsAre(0, 0, 0, 0, 0, 0)) << "long ago";
  profile.share_since_start();
  EXPECT_THAT(profile.uses(), ElementsAre(DoubleNear(0.3 / 22, 1e-9), DoubleNear(0.1 / 22, 1e-9), 0,
                                          0, DoubleNear(0.2 / 22, 1e-9), 0));
  profile.reset();
  EXPECT_THAT(profile.uses(), ElementsAre(0, 0, 0, 0, 0, 0));
}

// A program that makes functions all the time does not take the names of others.
TEST_F(LiveProfile, KeepsTheNamesThatHaveSamples) {
  constexpr std::uint32_t kMany = 200'000;
  constexpr std::uint32_t kFirst = 1000;
  const auto flood = [this](std::uint32_t from) {
    for (std::uint32_t i = 0; i < kMany; ++i) {
      const auto number = from + i;
      profile.name({.number = number,
                    .qualname = fmt::format("made_{}", number),
                    .file = "made.py",
                    .first_line = 1});
      if (i % 4 == 0) {
        profile.add(stack_of({{.code = number, .line = 1}}));
      }
      if (i % 100 == 0) {
        profile.add(stack_of({{.code = 1, .line = 11}}));
      }
    }
  };
  flood(kFirst);
  profile.name({.number = 3, .qualname = "late", .file = "c.py", .first_line = 30});
  add(stack_of({{.code = 3, .line = 31}}), 100);
  flood(kFirst + kMany);
  add(stack_of({{.code = 3, .line = 31}}), 100);
  add(stack_of({{.code = 1, .line = 11}}), 1000);
  profile.end_interval(seconds{1});
  const auto table = profile.table({.order = Order::kSelf, .most = 2});
  ASSERT_THAT(table.rows, SizeIs(2));
  EXPECT_EQ(table.rows[0].name, "inner");
  EXPECT_EQ(table.rows[1].name, "late");
}

// Nor does one that starts threads or processes all the time.
TEST_F(LiveProfile, ForgetsNamesOfThreadsAndProcessesWithoutRows) {
  constexpr std::uint32_t kMany = 100'000;
  auto stack = stack_of({{.code = 1, .line = 11}});
  const auto run = [&](std::uint32_t number, const std::string& name) {
    stack.pid = number;
    stack.tid = number;
    profile.name_thread(number, number, name);
    profile.name_process(number, name);
    profile.add(stack);
  };
  for (std::uint32_t number = 1; number < kMany; ++number) {
    run(number, "short");
  }
  run(kMany, "late");
  add(stack, 100);
  profile.end_interval(seconds{1});
  for (const auto view : {View::kThreads, View::kProcesses}) {
    EXPECT_EQ(profile.table({.view = view}).rows.at(0).name, "100000 late");
  }
}

TEST_F(LiveProfile, CountsWaitsApart) {
  add(stack_of({{.code = 1, .line = 11}, {.code = 2, .line = 21}}), 30);
  profile.add_wait(stack_of({{.code = 2, .line = 22}}, 7), Use::kSleep, milliseconds{500});
  profile.add_wait(stack_of({{.code = 2, .line = 22}}, 8), Use::kSleep, milliseconds{1000});
  profile.end_interval(seconds{1});
  EXPECT_THAT(profile.share(), DoubleNear(0.3, 1e-9));
  EXPECT_EQ(profile.samples(), 30U);
  const auto table = profile.table({.order = Order::kWait});
  ASSERT_THAT(table.rows, SizeIs(2));
  EXPECT_EQ(table.rows[0].name, "outer");
  EXPECT_THAT(table.rows[0].wait, DoubleNear(1.5, 1e-6));
  EXPECT_EQ(table.rows[0].wait_time, milliseconds{1500});
  EXPECT_THAT(table.rows[0].self, DoubleNear(0, 1e-9));
  EXPECT_THAT(table.rows[1].wait, DoubleNear(0, 1e-9));
  const auto threads = profile.table({.view = View::kThreads, .order = Order::kWait});
  ASSERT_THAT(threads.rows, SizeIs(3));
  EXPECT_THAT(threads.rows[0].wait, DoubleNear(1, 1e-6));
  EXPECT_EQ(profile.stack_of(View::kFunctions, table.rows[0].id).at(0).line, 22U);
}

TEST_F(LiveProfile, HasOneRowForAFunctionWithTwoNumbers) {
  profile.name({.number = 900, .qualname = "inner", .file = "a.py", .first_line = 10});
  add(stack_of({{.code = 1, .line = 11}}), 30);
  profile.add_wait(stack_of({{.code = 900, .line = 11}}), Use::kSleep, milliseconds{500});
  profile.end_interval(seconds{1});
  const auto table = profile.table({});
  ASSERT_THAT(table.rows, SizeIs(1));
  EXPECT_THAT(table.rows[0].self, DoubleNear(0.3, 1e-9));
  EXPECT_THAT(table.rows[0].wait, DoubleNear(0.5, 1e-6));
  EXPECT_THAT(profile.table({.view = View::kLines}).rows, SizeIs(1));
}

TEST_F(LiveProfile, OrdersAndFilters) {
  add(stack_of({{.code = 1, .line = 11}, {.code = 2, .line = 21}}), 3);
  profile.end_interval(seconds{1});
  EXPECT_EQ(profile.table({.order = Order::kTotal}).rows.size(), 2U);
  EXPECT_EQ(profile.table({.order = Order::kSelf}).rows.front().name, "inner");
  const auto filtered = profile.table({.filter = "b.py"});
  ASSERT_THAT(filtered.rows, SizeIs(1));
  EXPECT_EQ(filtered.rows.front().name, "outer");
  const auto first = profile.table({.most = 1});
  EXPECT_THAT(first.rows, SizeIs(1));
  EXPECT_EQ(first.left_out, 1U);
}

TEST_F(LiveProfile, KnowsLinesThreadsTasksAndProcesses) {
  auto stack = stack_of({{.code = 1, .line = 11}}, 7);
  stack.task = "Task-3";
  stack.gil = sample::Gil::kHeld;
  profile.name_thread(1, 7, "worker");
  profile.name_process(1, "service.py");
  add(stack, 50);
  profile.end_interval(seconds{1});
  const auto row = [&](View view) { return profile.table({.view = view}).rows.at(0); };
  EXPECT_EQ(row(View::kLines).line, 11U);
  EXPECT_EQ(row(View::kThreads).name, "7 worker");
  EXPECT_EQ(row(View::kTasks).name, "Task-3");
  EXPECT_EQ(row(View::kProcesses).name, "1 service.py");
  EXPECT_THAT(row(View::kProcesses).gil, DoubleNear(0.5, 1e-9));
  EXPECT_THAT(profile.gil_share(), DoubleNear(0.5, 1e-9));
}

TEST_F(LiveProfile, CountsGreenletsByTheFunctionThatTheyRun) {
  profile.name({.number = 3, .qualname = "Greenlet.run", .file = "/lib/gevent/greenlet.py"});
  profile.name({.number = sample::kGarbageCollector, .qualname = "[gc]", .file = ""});
  const auto with = [this](std::vector<sample::Frame> frames, bool in_greenlet,
                           bool truncated = false, std::string task = {}) {
    auto stack = stack_of(std::move(frames));
    stack.truncated = truncated;
    stack.task = std::move(task);
    profile.add(stack, 1, Use::kUnknown, in_greenlet);
  };
  with({{.code = 1}, {.code = 2}, {.code = 3}}, true);
  with({{.code = 2}}, true);
  with({{.code = sample::kGarbageCollector}}, true);
  with({{.code = 1}, {.code = 9}}, true);
  with({{.code = 1}, {.code = 2}}, true, true);
  with({{.code = 1}, {.code = 2}}, true, false, "Task-1");
  with({{.code = 1}, {.code = 2}}, false);
  profile.end_interval(seconds{1});
  std::map<std::string, std::pair<bool, std::chrono::nanoseconds>> rows;
  for (const auto& row : profile.table({.view = View::kTasks}).rows) {
    rows[row.name] = {row.greenlet, row.self_time};
    EXPECT_EQ(row.place, "pid 1");
  }
  EXPECT_EQ(rows, (decltype(rows){{"[greenlet]", {true, milliseconds{10}}},
                                  {"[greenlet] outer", {true, milliseconds{20}}},
                                  {"[greenlet] [unknown]", {true, milliseconds{20}}},
                                  {"Task-1", {false, milliseconds{10}}}}));
}

TEST_F(LiveProfile, ForgetsSharesButNotTimes) {
  add(stack_of({{.code = 1, .line = 11}}), 100);
  profile.end_interval(seconds{1});
  for (std::size_t i = 0; i < kHistory; ++i) {
    profile.end_interval(seconds{1});
  }
  const auto row = profile.table({}).rows.at(0);
  EXPECT_EQ(row.self, 0);
  EXPECT_EQ(row.self_time, seconds{1});
  EXPECT_THAT(row.history, SizeIs(kHistory - 1));
  profile.reset();
  EXPECT_THAT(profile.table({}).rows, IsEmpty());
  EXPECT_EQ(profile.samples(), 0U);
}

TEST_F(LiveProfile, ShowsTheMostFrequentStackOfARow) {
  add(stack_of({{.code = 1, .line = 11}, {.code = 2, .line = 21}}), 2);
  add(stack_of({{.code = 1, .line = 12}}), 3);
  profile.end_interval(seconds{1});
  EXPECT_THAT(profile.stack_of(View::kFunctions, 1), ElementsAre(Place{"inner", "a.py", 12}));
  EXPECT_THAT(profile.stack_of(View::kFunctions, 2),
              ElementsAre(Place{"inner", "a.py", 11}, Place{"outer", "b.py", 21}));
  EXPECT_THAT(profile.stack_of(View::kFunctions, 99), IsEmpty());
}

TEST_F(LiveProfile, CountsAStackForAllSamplesThatItStandsFor) {
  profile.add(stack_of({{.code = 1, .line = 11}, {.code = 2, .line = 21}}), 10);
  profile.add(stack_of({{.code = 1, .line = 12}}), 30);
  profile.end_interval(seconds{1});
  const auto row = profile.table({}).rows.at(0);
  EXPECT_EQ(profile.samples(), 40U);
  EXPECT_DOUBLE_EQ(row.self, 0.4);
  EXPECT_EQ(row.self_time, milliseconds{400});
  EXPECT_THAT(profile.stack_of(View::kFunctions, 1), ElementsAre(Place{"inner", "a.py", 12}));
}

TEST_F(LiveProfile, ShowsThreadsThatRunNoPython) {
  add(stack_of({}), 4);
  profile.end_interval(seconds{1});
  EXPECT_EQ(profile.table({}).rows.at(0).name, "(no Python function)");
}

// Whatever a program makes, memory is limited.
TEST_F(LiveProfile, IsLimited) {
  for (std::uint32_t i = 0; i < 200'000; ++i) {
    profile.add(stack_of({{.code = 1, .line = i}}, i));
  }
  profile.end_interval(seconds{1});
  const auto table = profile.table({.view = View::kLines});
  EXPECT_LE(table.rows.size() + table.left_out, 65536U);
  EXPECT_GT(table.rows.size() + table.left_out, 1000U);
}

TEST_F(LiveProfile, ForgetsTasksThatAreTooMany) {
  auto stack = stack_of({{.code = 1, .line = 1}});
  for (int i = 0; i < 70'000; ++i) {
    stack.task = std::to_string(i);
    profile.add(stack);
  }
  profile.end_interval(seconds{1});
  const auto table = profile.table({.view = View::kTasks});
  EXPECT_EQ(table.rows.size() + table.left_out, 70'000U - 65'536U);
  EXPECT_EQ(profile.stack_of(View::kTasks, table.rows.at(0).id).size(), 1U);
}

}  // namespace
}  // namespace pyinject::live
