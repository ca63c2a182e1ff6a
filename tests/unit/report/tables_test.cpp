#include "report/tables.hpp"

#include "report/code_places.hpp"
#include "report/machinery.hpp"
#include "report/report_text.hpp"
#include "report/thread_names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace pyinject::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

// main() of the program calls load() of a library, which runs C code of the interpreter and of
// libc.
class Tables : public testing::Test {
 protected:
  Tables() {
    profile.objects = {{.path = "/usr/bin/python3.14"}, {.path = "/lib/libc.so.6"}, {.path = "k"}};
    profile.functions = {{.kind = Kind::kPython, .name = "main", .file = "/srv/app/main.py"},
                         {.kind = Kind::kPython, .name = "load", .file = "/usr/lib/json.py"},
                         {.kind = Kind::kNative, .name = "_PyEval_EvalFrameDefault", .object = 0},
                         {.kind = Kind::kNative, .name = "memcpy", .object = 1},
                         {.kind = Kind::kKernel, .name = "read", .object = 2},
                         {.kind = Kind::kMark, .name = "[GIL held]"},
                         {.kind = Kind::kMark, .name = "[task fetch]"}};
    profile.frames = {{.function = 0, .line = 3},
                      {.function = 1, .line = 7},
                      {.function = 2},
                      {.function = 3},
                      {.function = 4},
                      {.function = 5},
                      {.function = 6},
                      {.function = 1, .line = 8}};
    profile.nodes = {{},
                     {.caller = 0, .frame = 0},    // 1: main
                     {.caller = 1, .frame = 2},    // 2: evaluator
                     {.caller = 2, .frame = 1},    // 3: load, line 7
                     {.caller = 3, .frame = 2},    // 4: evaluator
                     {.caller = 4, .frame = 3},    // 5: memcpy
                     {.caller = 2, .frame = 7},    // 6: load, line 8
                     {.caller = 6, .frame = 4},    // 7: read
                     {.caller = 0, .frame = 3},    // 8: memcpy, no Python
                     {.caller = 0, .frame = 5},    // 9: [GIL held]
                     {.caller = 9, .frame = 0},    // 10: main
                     {.caller = 0, .frame = 6},    // 11: [task fetch]
                     {.caller = 11, .frame = 0}};  // 12: main
    profile.events = {{.name = "context-switches", .unit = Unit::kWaits},
                      {.name = "cpu-clock", .unit = Unit::kNanoseconds}};
    profile.threads = {{.pid = 5, .tid = 5, .name = "web", .process = "web"},
                       {.pid = 5, .tid = 6, .name = "io", .process = "web"}};
  }
  void add(std::uint32_t stack, int times, std::uint32_t thread = 0) {
    for (int i = 0; i < times; ++i) {
      profile.samples.push_back({.time = profile.samples.size() * 1'000'000'000,
                                 .period = 10,
                                 .stack = stack,
                                 .thread = thread,
                                 .event = 1});
    }
  }
  void wait(std::uint32_t stack, std::uint64_t nanoseconds) {
    profile.samples.push_back({.period = nanoseconds, .stack = stack, .event = 0});
  }
  static std::vector<std::uint64_t> figures(const Row& row) {
    const auto& counts = row.counts;
    return {counts.self(), counts.python, counts.native, counts.kernel, counts.total};
  }
  Profile profile;
};

TEST_F(Tables, ChargeCToItsPythonCaller) {
  add(4, 5);  // load interprets
  add(5, 3);
  add(7, 2);
  add(8, 1);
  const auto tables = make_tables(profile, {});
  ASSERT_THAT(tables, SizeIs(1));
  const auto& table = tables.front();
  EXPECT_EQ(table.event, "cpu-clock");
  EXPECT_EQ(table.weight, 11U);
  ASSERT_THAT(table.rows, SizeIs(2));
  EXPECT_EQ(table.rows[0].name, "load");
  EXPECT_THAT(figures(table.rows[0]), ElementsAre(10, 5, 3, 2, 10));
  EXPECT_EQ(table.rows[1].name, "main");
  EXPECT_THAT(figures(table.rows[1]), ElementsAre(0, 0, 0, 0, 10));
  ASSERT_TRUE(table.others);
  EXPECT_THAT(figures(*table.others), ElementsAre(1, 0, 1, 0, 1));
}

TEST_F(Tables, NeverAddWaitsToSamples) {
  add(5, 2);
  wait(7, 3'000'000);
  const auto tables = make_tables(profile, {});
  ASSERT_THAT(tables, SizeIs(2));
  EXPECT_EQ(tables[0].weight, 2U);
  EXPECT_EQ(tables[1].weight, 3'000'000U);
  const auto text = to_text(tables, {});
  EXPECT_THAT(text, HasSubstr("cpu-clock: 2 samples"));
  EXPECT_THAT(text, HasSubstr("waits: 3.00 ms in all"));
}

TEST_F(Tables, ChargeLibrariesToMine) {
  add(5, 3);
  const auto tables = make_tables(profile, {.mine = "/srv/app"});
  EXPECT_EQ(tables.front().rows.front().name, "main");
  EXPECT_THAT(figures(tables.front().rows.front()), ElementsAre(3, 0, 3, 0, 3));
  const auto others = make_tables(profile, {.mine = "/srv/ap"});
  EXPECT_TRUE(others.front().others) << "/srv/ap is no directory of /srv/app/main.py";
}

TEST_F(Tables, HaveRowsOfLinesThreadsAndTasks) {
  add(3, 2);
  add(6, 1, 1);
  add(12, 4);
  const auto lines = make_tables(profile, {.view = View::kLines});
  ASSERT_THAT(lines.front().rows, SizeIs(3));
  EXPECT_EQ(lines.front().rows[1].line, 7U);
  EXPECT_EQ(lines.front().rows[2].line, 8U);
  const auto threads = make_tables(profile, {.view = View::kThreads});
  EXPECT_EQ(threads.front().rows[0].name, "web 5/5");
  EXPECT_EQ(threads.front().rows[0].counts.self(), 6U);
  const auto tasks = make_tables(profile, {.view = View::kTasks});
  EXPECT_EQ(tasks.front().rows[0].name, "fetch");
  EXPECT_EQ(tasks.front().rows[0].counts.self(), 4U);
  EXPECT_EQ(tasks.front().others->counts.self(), 3U);
}

TEST_F(Tables, OfTheGilSayWhoHeldIt) {
  add(10, 4);
  add(4, 1);
  const auto tables = make_tables(profile, {.view = View::kGil});
  ASSERT_THAT(tables.front().rows, SizeIs(1));
  EXPECT_EQ(tables.front().rows[0].name, "main");
  EXPECT_THAT(to_text(tables, {.view = View::kGil}), HasSubstr("80.0%"));
}

TEST_F(Tables, AreOfTheSelectedSamples) {
  add(5, 3);     // 0 s to 2 s
  add(12, 2);    // 3 s, 4 s
  add(4, 1, 1);  // 5 s
  const auto count = [&](const TableOptions& options) -> std::uint64_t {
    const auto tables = make_tables(profile, options);
    return tables.empty() ? 0 : tables.front().weight;
  };
  EXPECT_EQ(count({.tids = {6}}), 1U);
  EXPECT_EQ(count({.pids = {7}}), 0U);
  EXPECT_EQ(count({.comm = "io"}), 1U);
  EXPECT_EQ(count({.task = "fetch"}), 2U);
  EXPECT_EQ(count({.function = "load"}), 4U);
  EXPECT_EQ(count({.from = 1.0, .until = 4.0}), 3U);
}

TEST_F(Tables, AreCutWithASum) {
  add(5, 3);
  add(12, 2);
  const auto text = to_text(make_tables(profile, {}), {.most = 1});
  EXPECT_THAT(text, HasSubstr("(1 more)"));
  EXPECT_THAT(text, HasSubstr("40.0%"));
}

TEST_F(Tables, AreJsonAndCsv) {
  profile.functions[1].file = "/a,b\xFF.py";
  add(5, 3);
  const auto tables = make_tables(profile, {.view = View::kLines});
  const auto json = nlohmann::json::parse(to_json(tables, {.view = View::kLines}));
  EXPECT_EQ(json.at("version"), 1);
  EXPECT_EQ(json.at("tables").at(0).at("rows").at(0).at("line"), 7);
  EXPECT_THAT(to_csv(tables, {.view = View::kLines}),
              HasSubstr("cpu-clock,3,0,3,0,3,load,\"/a,b\xFF.py\",7\n"));
}

TEST(Machinery, IsKnownByName) {
  EXPECT_TRUE(is_machinery_name("_PyEval_EvalFrameDefault.cold"));
  EXPECT_TRUE(is_machinery_name("py_trampoline_evaluator"));
  EXPECT_TRUE(is_machinery_name("method_vectorcall_NOARGS"));
  EXPECT_FALSE(is_machinery_name("builtin_sorted"));
  EXPECT_FALSE(is_machinery_name("PyEval_RestoreThread"));
}

TEST(PythonSymbols, HaveNameFileAndLine) {
  const auto plain = parse_python_symbol("py::Cart.add:/srv/a:b.py");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->name, "Cart.add");
  EXPECT_EQ(plain->file, "/srv/a:b.py");
  EXPECT_EQ(plain->line, 0U);
  const auto lined = parse_python_symbol("py::<module>:/srv/a.py:12");
  ASSERT_TRUE(lined);
  EXPECT_EQ(lined->file, "/srv/a.py");
  EXPECT_EQ(lined->line, 12U);
  EXPECT_FALSE(parse_python_symbol("memcpy"));
  EXPECT_EQ(parse_python_symbol("py::x")->file, "");
}

TEST(MarkNames, AreThoseOfThisTool) {
  EXPECT_TRUE(is_mark("[task a [b]]"));
  EXPECT_TRUE(is_mark("[truncated: stack dump]"));
  EXPECT_FALSE(is_mark("[libc.so.6]"));
}

TEST(ThreadNamesOverTime, AreInheritedAndChange) {
  ThreadNames names;
  names.name(0, 1, "main");
  names.start(10, 1, 2);
  names.start(20, 2, 3);
  names.name(15, 2, "worker");
  names.complete();
  EXPECT_EQ(names.at(12, 2), "main");
  EXPECT_EQ(names.at(15, 2), "worker");
  EXPECT_EQ(names.at(30, 3), "worker");
  EXPECT_EQ(names.at(30, 4), "");
}

}  // namespace
}  // namespace pyinject::report
