// Several recordings as one, and two recordings compared.
#include "report/difference.hpp"
#include "report/merge.hpp"
#include "unit/report/made_profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace pyinject::report {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

class SeveralRecordings : public MadeProfile {
 protected:
  // As another recording numbers the same functions, with one that this one does not have.
  [[nodiscard]] static Profile other() {
    Profile profile;
    profile.objects = {{.path = "/lib/libc.so.6"}, {.path = "/lib/libz.so.1"}};
    profile.functions = {{.kind = Kind::kNative, .name = "deflate", .object = 1},
                         {.kind = Kind::kPython, .name = "main", .file = "/srv/app/main.py"},
                         {.kind = Kind::kNative, .name = "memcpy", .object = 0}};
    profile.frames = {{.function = 1, .line = 3}, {.function = 0}, {.function = 2}};
    profile.nodes = {{},
                     {.caller = 0, .frame = 0},   // 1: main
                     {.caller = 1, .frame = 1},   // 2: deflate
                     {.caller = 0, .frame = 2}};  // 3: memcpy
    profile.events = {{.name = "cpu-clock", .unit = Unit::kNanoseconds}};
    profile.threads = {{.pid = 9, .tid = 9, .name = "web", .process = "web"}};
    profile.lost = 3;
    profile.notes = {"3 lost"};
    return profile;
  }
};

TEST_F(SeveralRecordings, AreOneWithEachFunctionOnce) {
  add(1, 2);  // at 0 s and 1 s
  add(8, 1);
  profile.notes = {"3 lost"};
  auto second = other();
  second.samples = {{.time = 500'000'000, .stack = 2}, {.time = 700'000'000, .stack = 3}};
  const auto merged = merge({profile, second});
  EXPECT_EQ(merged.samples.size(), 5U);
  EXPECT_TRUE(std::ranges::is_sorted(merged.samples, {}, &Sample::time));
  EXPECT_EQ(merged.lost, 3U);
  EXPECT_THAT(merged.notes, ElementsAre("3 lost"));
  EXPECT_EQ(merged.functions.size(), profile.functions.size() + 1) << "deflate";
  EXPECT_EQ(merged.objects.size(), profile.objects.size() + 1);
  EXPECT_THAT(merged.threads, SizeIs(3));
  const auto tables = make_tables(merged, {.by = By::kMixed});
  ASSERT_THAT(tables, SizeIs(1));
  const auto& rows = tables.front().rows;
  ASSERT_THAT(rows, SizeIs(3));
  EXPECT_EQ(rows[0].name, "main");
  EXPECT_THAT(figures(rows[0]), ElementsAre(2, 2, 0, 0, 3));
  EXPECT_EQ(rows[1].name, "memcpy");
  EXPECT_EQ(rows[1].counts.self(), 2U) << "one of each recording";
  EXPECT_EQ(rows[2].name, "deflate");
}

TEST_F(SeveralRecordings, ComparedByTheirSharesOfSamples) {
  add(4, 6);
  add(1, 2);
  const auto before = make_tables(profile, {});
  profile.samples.clear();
  profile.functions[0].file = "/srv/v2/app/main.py";
  add(4, 6);
  add(1, 14);
  const auto differences = compare(before, make_tables(profile, {}), false);
  ASSERT_THAT(differences, SizeIs(1));
  EXPECT_EQ(differences[0].before, 8U);
  EXPECT_EQ(differences[0].now, 20U);
  EXPECT_EQ(to_text(differences, {}),
            "cpu-clock: 8 samples before, 20 samples now\n"
            " self  before    now  total  before     now  function  file\n"
            "-45.0   75.0%  30.0%  -45.0   75.0%   30.0%  load      /usr/lib/json.py\n"
            "+45.0   25.0%  70.0%   +0.0  100.0%  100.0%  main      /srv/v2/app/main.py\n");
  const auto json = nlohmann::json::parse(to_json(differences, {}));
  const auto& row = json.at("differences").at(0).at("rows").at(0);
  EXPECT_EQ(row.at("name"), "load");
  EXPECT_EQ(row.at("self_before"), 6);
  EXPECT_EQ(row.at("self"), 6);
}

TEST_F(SeveralRecordings, ComparedByTimesOfWaits) {
  wait(1, 2'000'000'000);
  const auto before = make_tables(profile, {});
  profile.samples.clear();
  wait(1, 500'000'000);
  wait(3, 500'000'000);
  add(1, 3);  // only this recording has CPU samples
  EXPECT_EQ(to_text(compare(before, make_tables(profile, {}), false), {}),
            "context-switches: 2.00 s before, 1.00 s now\n"
            "   self  before     now    total  before     now  function  file\n"
            "-1.50 s  2.00 s  500 ms  -1.00 s  2.00 s  1.00 s  main      /srv/app/main.py\n"
            "+500 ms       0  500 ms  +500 ms       0  500 ms  load      /usr/lib/json.py\n");
}

// app.py imports lib, which imports json, whose code runs C code.
TEST_F(SeveralRecordings, ShowWhatImportsTake) {
  profile.functions = {
      {.kind = Kind::kPython, .name = "<module>", .file = "/srv/app.py"},
      {.kind = Kind::kPython, .name = "_find_and_load", .file = "<frozen importlib._bootstrap>"},
      {.kind = Kind::kPython, .name = "<module>", .file = "/v/site-packages/lib/__init__.py"},
      {.kind = Kind::kPython, .name = "<module>", .file = "/usr/lib/python3.14/json/decoder.py"},
      {.kind = Kind::kNative, .name = "compile", .object = 0}};
  profile.frames = {
      {.function = 0}, {.function = 1}, {.function = 2}, {.function = 3}, {.function = 4}};
  profile.nodes = {{},
                   {.caller = 0, .frame = 0},   // 1: app
                   {.caller = 1, .frame = 1},   // 2: the search for lib
                   {.caller = 2, .frame = 2},   // 3: lib
                   {.caller = 3, .frame = 1},   // 4: the search for json.decoder
                   {.caller = 4, .frame = 3},   // 5: json.decoder
                   {.caller = 5, .frame = 4}};  // 6: C code of it
  add(1, 1);
  add(2, 2);
  add(3, 4);
  add(4, 8);
  add(6, 16);
  const auto tables = make_tables(profile, {.view = View::kImports, .by_total = true});
  ASSERT_THAT(tables, SizeIs(1));
  const auto& rows = tables.front().rows;
  ASSERT_THAT(rows, SizeIs(3));
  EXPECT_EQ(rows[0].name, "lib");
  EXPECT_EQ(std::pair(rows[0].counts.self(), rows[0].counts.total), std::pair(12UL, 28UL));
  EXPECT_EQ(rows[1].name, "json.decoder");
  EXPECT_EQ(std::pair(rows[1].counts.self(), rows[1].counts.total), std::pair(16UL, 16UL));
  EXPECT_EQ(rows[2].name, "(import system)");
  EXPECT_EQ(rows[2].counts.self(), 2U);
  ASSERT_TRUE(tables.front().others);
  EXPECT_EQ(tables.front().others->counts.self(), 1U);
}

}  // namespace
}  // namespace pyinject::report
