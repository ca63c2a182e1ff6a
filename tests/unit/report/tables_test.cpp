#include "report/tables.hpp"

#include "report/code_places.hpp"
#include "report/demangled.hpp"
#include "report/machinery.hpp"
#include "report/marks.hpp"
#include "report/report_text.hpp"
#include "report/thread_names.hpp"
#include "unit/report/made_profile.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pyinject::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class Tables : public MadeProfile {};

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

TEST_F(Tables, KnowWhatAFunctionDoes) {
  const auto figures_of_memcpy = [&](sample::Does does) {
    profile.samples.clear();
    add(5, 3);
    for (auto& sample : profile.samples) {
      sample.does = does;
    }
    return figures(make_tables(profile, {}).front().rows[0]);
  };
  EXPECT_THAT(figures_of_memcpy(sample::Does::kCall), ElementsAre(3, 0, 3, 0, 3));
  EXPECT_THAT(figures_of_memcpy(sample::Does::kByteCode), ElementsAre(3, 3, 0, 0, 3))
      << "a long text";
  profile.objects[1].path = "/srv/app/fast.so";
  EXPECT_THAT(figures_of_memcpy(sample::Does::kByteCode), ElementsAre(3, 0, 3, 0, 3))
      << "a + b of arrays";
  profile.functions[0].name = "[gc]";
  profile.functions[0].file = "";
  profile.samples.clear();
  add(2, 1);
  EXPECT_THAT(figures(make_tables(profile, {}).front().rows[0]), ElementsAre(1, 0, 1, 0, 1));
}

TEST_F(Tables, DivideByNamesWhereASampleDoesNotSayWhatItDoes) {
  const auto python = [&](const char* called) {
    profile.functions[3].name = called;
    profile.functions[3].object = 0;
    profile.samples.clear();
    add(5, 1);
    return make_tables(profile, {}).front().rows[0].counts.python == 1;
  };
  for (const auto* const name : {"long_add", "PyNumber_Add", "_PyType_Lookup", "dict_subscript",
                                 "_Py_Dealloc", "tupledealloc", "insertdict", "object_vacall"}) {
    EXPECT_TRUE(python(name)) << name;
  }
  for (const auto* const name :
       {"builtin_sorted", "list_append", "sre_ucs1_match", "PyObject_Str", "PyObject_Size",
        "PySequence_Tuple", "PyObject_IsInstance", "gc_collect_main", ""}) {
    EXPECT_FALSE(python(name)) << name;
  }
  const auto tables = make_tables(profile, {});
  EXPECT_EQ(tables.front().undecided, 1U) << "the last one has no name";
  EXPECT_THAT(to_text(tables, {}), HasSubstr("\n1 in native may be Python: "));
  EXPECT_EQ(nlohmann::json::parse(to_json(tables, {})).at("tables").at(0).at("undecided"), 1);
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

TEST_F(Tables, CountMemoryInBytes) {
  profile.events[1] = {.name = "memory", .unit = Unit::kBytes};
  add(5, 2);
  profile.samples.back().period = 2'000'000;
  const auto tables = make_tables(profile, {});
  EXPECT_EQ(tables.front().weight, 2'000'010U);
  EXPECT_THAT(to_text(tables, {}), HasSubstr("memory: 2.0 MB mapped and not given back ("));
  EXPECT_EQ(nlohmann::json::parse(to_json(tables, {})).at("tables").at(0).at("unit"), "bytes");
}

TEST_F(Tables, SayThatFaultsAreOfMemoryTouched) {
  profile.events[1] = {.name = "page-faults/period=1/", .unit = Unit::kSamples};
  add(5, 2);
  EXPECT_THAT(to_text(make_tables(profile, {}), {}),
              HasSubstr("page-faults/period=1/: 2 samples: memory touched, kept or not\n"));
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

// Below each mark main(), which calls load(), as if they started greenlets or not.
TEST_F(Tables, HaveRowsOfGreenlets) {
  profile.functions.push_back({.kind = Kind::kMark, .name = "[greenlet]"});
  profile.functions.push_back({.kind = Kind::kMark, .name = "[unnamed Python functions]"});
  const auto mark = static_cast<std::uint32_t>(profile.frames.size());
  profile.frames.push_back({.function = 7});
  profile.frames.push_back({.function = 8});
  const auto below = [&](std::vector<std::uint32_t> frames) {
    std::uint32_t node = 0;
    for (const auto frame : frames) {
      profile.nodes.push_back({.caller = node, .frame = frame});
      node = static_cast<std::uint32_t>(profile.nodes.size() - 1);
    }
    return node;
  };
  const std::vector<std::pair<std::uint32_t, std::string>> stacks{
      {below({mark, 2, 0, 1}), "[greenlet] main"},
      {below({5, mark, 2}), "[greenlet]"},
      {below({mark, mark + 1, 2, 0}), "[greenlet] [unknown]"},
      {below({6, mark, 0}), "fetch"}};
  const UnmarkedStacks unmarked{profile};
  for (const auto& [stack, name] : stacks) {
    auto frames = frames_of(profile, stack);
    const auto marks = take_marks(profile, frames);
    EXPECT_EQ(marks.task_or_greenlet(), name);
    EXPECT_EQ(unmarked.all_marks()[unmarked.marks(stack)], marks);
  }
  add(stacks[0].first, 3);
  add(stacks[3].first, 1);
  add(5, 2);
  const auto tables = make_tables(profile, {.view = View::kTasks});
  ASSERT_THAT(tables.front().rows, SizeIs(2));
  EXPECT_EQ(tables.front().rows[0].name, "[greenlet] main");
  EXPECT_EQ(tables.front().rows[0].counts.self(), 3U);
  EXPECT_EQ(tables.front().others->counts.self(), 2U);
  EXPECT_EQ(make_tables(profile, {.task = "[greenlet] main"}).front().weight, 3U);
  profile.functions[0].file = "/usr/lib/python3/dist-packages/gevent/greenlet.py";
  auto frames = frames_of(profile, stacks[0].first);
  const auto marks = take_marks(profile, frames);
  EXPECT_EQ(marks.task_or_greenlet(), "[greenlet] load");
  const UnmarkedStacks again{profile};
  EXPECT_EQ(again.all_marks()[again.marks(stacks[0].first)], marks);
}

TEST_F(Tables, NameTheHolderOfTheGil) {
  add(10, 4);
  add(4, 1);
  const auto tables = make_tables(profile, {.view = View::kGil});
  ASSERT_THAT(tables.front().rows, SizeIs(1));
  EXPECT_EQ(tables.front().rows[0].name, "main");
  EXPECT_THAT(to_text(tables, {.view = View::kGil}), HasSubstr("80.0%"));
}

// Thread 5 waits from 1 s to 4 s; meanwhile thread 6 holds the GIL in three samples.
TEST_F(Tables, NameTheHolderOfTheGilDuringAWait) {
  profile.frames.push_back({.function = 7});
  profile.functions.push_back({.kind = Kind::kMark, .name = "[waiting for the GIL]"});
  profile.nodes.push_back({.caller = 0, .frame = 8});   // 13: [waiting for the GIL]
  profile.nodes.push_back({.caller = 13, .frame = 1});  // 14: load
  add(10, 6, 1);
  profile.samples.push_back(
      {.time = 1'500'000'000, .period = 3'000'000'000, .stack = 14, .thread = 0, .event = 0});
  std::ranges::stable_sort(profile.samples, {}, &Sample::time);
  const auto tables = make_tables(profile, {.view = View::kGil});
  ASSERT_THAT(tables, SizeIs(2));
  EXPECT_THAT(tables[0].rows.front().holders, SizeIs(0)) << "of samples";
  const auto& row = tables[1].rows.front();
  EXPECT_EQ(row.name, "load");
  EXPECT_EQ(row.counts.native, 3'000'000'000U);
  ASSERT_THAT(row.holders, SizeIs(1));
  EXPECT_EQ(row.holders[0].name, "main");
  EXPECT_EQ(row.holders[0].waited, 3'000'000'000U);
  EXPECT_THAT(to_text(tables, {.view = View::kGil}), HasSubstr("held by main (100.0%)"));
}

TEST_F(Tables, AreOfTheSelectedSamples) {
  add(5, 3);     // 0 s to 2 s
  add(12, 2);    // 3 s, 4 s
  add(4, 1, 1);  // 5 s
  const auto count = [&](const ViewOptions& options) -> std::uint64_t {
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

TEST_F(Tables, DivideFunctionsIntoProgramAndInterpreter) {
  for (const auto* const name : {"dict_subscript", "builtin_sorted", ""}) {
    profile.functions.push_back({.kind = Kind::kNative, .name = name, .object = 0});
  }
  for (const auto* const name : {"[truncated: python stack]", "[greenlet]"}) {
    profile.functions.push_back({.kind = Kind::kMark, .name = name});
  }
  // An interpreter in a file of another name: it calls a Python function.
  profile.objects.push_back({.path = "/opt/app/server"});
  profile.functions.push_back(
      {.kind = Kind::kNative, .name = "_PyEval_EvalFrameDefault", .object = 3});
  profile.frames.push_back({.function = 12});
  profile.nodes.push_back({.caller = 0, .frame = 8});
  profile.nodes.push_back({.caller = 13, .frame = 0});
  EXPECT_THAT(parts_of(profile),
              ElementsAre(Part::kProgram, Part::kProgram, Part::kInterpreter, Part::kProgram,
                          Part::kProgram, Part::kInterpreter, Part::kInterpreter, Part::kByteCode,
                          Part::kProgram, Part::kNameless, Part::kProgram, Part::kGreenlet,
                          Part::kInterpreter));
}

TEST(Machinery, IsKnownByName) {
  EXPECT_TRUE(is_machinery_name("_PyEval_EvalFrameDefault.cold"));
  EXPECT_TRUE(is_machinery_name("py_trampoline_evaluator"));
  EXPECT_TRUE(is_machinery_name("method_vectorcall_NOARGS"));
  EXPECT_FALSE(is_machinery_name("builtin_sorted"));
  EXPECT_FALSE(is_machinery_name("PyEval_RestoreThread"));
  EXPECT_TRUE(is_machinery_name("_Py_BuiltinCallFast_StackRef"));
  EXPECT_TRUE(is_machinery_name("pymain_run_python.constprop.0"));
  EXPECT_FALSE(is_machinery_name("type_calling"));
  EXPECT_FALSE(is_machinery_name("gen_send.other"));
}

// A recorded program chooses the names in its perf map and its libraries.
TEST(Machinery, IsKnownByNamesOfAnyLength) {
  const std::string many(300'000, 'a');
  EXPECT_TRUE(is_machinery_name("_PyEval_EvalFrame" + many));
  EXPECT_FALSE(is_machinery_name("_Py_" + many));
  std::string calls = "_Py_";
  for (int i = 0; i < 1000; ++i) {
    calls += "Call.cold1";
  }
  EXPECT_FALSE(is_machinery_name(calls));
}

TEST(Demangled, IsANameOfCpp) {
  EXPECT_EQ(demangled("_ZN3foo3barEi"), "foo::bar(int)");
  EXPECT_EQ(demangled("plain"), "plain");
  EXPECT_EQ(demangled("_Zgarbage"), "_Zgarbage");
}

// Each argument names the one before twice: the name would have gigabytes.
TEST(Demangled, IsNoNameThatGrowsWithoutBound) {
  std::string symbol = "_Z1f1AIiiE";
  for (const char number : std::string_view{"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"}) {
    const auto before = fmt::format("S{}_", number);
    symbol += "S_I" + before + before + "E";
  }
  EXPECT_EQ(demangled(symbol), symbol);
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
  EXPECT_TRUE(is_mark("[greenlet]"));
  EXPECT_TRUE(is_mark("[greenlet switch]"));
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
