#include "report/views.hpp"

#include "report/events.hpp"
#include "unit/report/made_profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <variant>

namespace pyinject::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class Views : public MadeProfile {
 protected:
  [[nodiscard]] std::string text(ShowOptions options) const {
    const auto shown = show(profile, options);
    const auto* const nothing = std::get_if<NothingToShow>(&shown);
    return nothing != nullptr ? "nothing: " + nothing->why : std::get<std::string>(shown);
  }
  [[nodiscard]] nlohmann::json json(ShowOptions options) const {
    options.format = Format::kJson;
    return nlohmann::json::parse(text(options)).at("tables");
  }
  // The source of load(), of which samples have the lines 7 and 8.
  static SourceFile source(const std::string& path, std::uint32_t /*pid*/) {
    EXPECT_EQ(path, "/usr/lib/json.py");
    return {.lines = {"import x", "", "class J:", "  def load(self):", "\tdoc", "", "    a()",
                      "    b()", "", "def other():"},
            .note = "it is newer"};
  }
};

TEST_F(Views, TreeHasTotalsOfPathsAndFoldsSmallOnes) {
  add(4, 97);
  add(10, 2);  // main alone
  add(8, 1);   // no Python
  const auto rows = json({.view = {.view = View::kTree}}).at(0).at("rows");
  ASSERT_THAT(rows, SizeIs(3));
  EXPECT_EQ(rows[0].at("name"), "main");
  EXPECT_EQ(rows[0].at("total"), 99);
  EXPECT_EQ(rows[0].at("self"), 2);
  EXPECT_EQ(rows[1].at("name"), "load");
  EXPECT_EQ(rows[1].at("depth"), 1);
  EXPECT_EQ(rows[1].at("total"), 97);
  EXPECT_EQ(rows[2].at("name"), "");
  const auto folded = json({.view = {.view = View::kTree}, .least = 98}).at(0).at("rows");
  ASSERT_THAT(folded, SizeIs(3));
  EXPECT_EQ(folded[1].at("folded"), 1);
  EXPECT_EQ(folded[1].at("total"), 97);
  EXPECT_THAT(text({.view = {.view = View::kTree}}), HasSubstr("\n 97.0%     97    97   load "));
}

TEST_F(Views, TreeCanHaveCFunctionsOrOnlyMine) {
  add(5, 4);
  EXPECT_THAT(text({.view = {.view = View::kTree, .by = By::kMixed}}), HasSubstr("memcpy"));
  const auto mine = text({.view = {.view = View::kTree, .mine = "/srv/app"}});
  EXPECT_THAT(mine, HasSubstr("main"));
  EXPECT_THAT(mine, Not(HasSubstr("load")));
}

TEST_F(Views, WaitsHaveWhatAndWhere) {
  profile.functions[4].name = "pipe_read";
  wait(7, 3'000'000);
  wait(7, 1'000'000);
  add(5, 9);
  const auto table = json({.view = {.view = View::kWaits}}).at(0);
  EXPECT_EQ(table.at("all"), 4'000'000);
  ASSERT_THAT(table.at("rows"), SizeIs(1));
  const auto& row = table.at("rows").at(0);
  EXPECT_EQ(row.at("for"), "pipe");
  EXPECT_EQ(row.at("reason"), "pipe_read");
  EXPECT_EQ(row.at("name"), "load");
  EXPECT_EQ(row.at("line"), 8);
  EXPECT_EQ(row.at("count"), 2);
  EXPECT_THAT(text({.view = {.view = View::kWaits}}), HasSubstr("4.00 ms in 2 waits"));
  EXPECT_EQ(text({.view = {.view = View::kWaits}, .format = Format::kCsv}),
            "waited,count,for,reason,name,file,line\n"
            "4000000,2,pipe,pipe_read,load,/usr/lib/json.py,8\n");
}

TEST_F(Views, WaitsMustBeRecorded) {
  profile.events.erase(profile.events.begin());
  add(5, 1);
  profile.samples.front().event = 0;
  EXPECT_THAT(text({.view = {.view = View::kWaits}}), HasSubstr("record with --off-cpu"));
}

TEST_F(Views, EventsAreSideBySide) {
  profile.events.push_back({.name = "cycles"});
  profile.events.push_back({.name = "instructions"});
  add(5, 3);  // 10 ns each
  wait(7, 2'000'000'000);
  for (const auto event : {2U, 3U}) {
    profile.samples.push_back({.period = event == 2 ? 1'000U : 2'500U, .stack = 5, .event = event});
  }
  const auto table = json({.view = {.view = View::kEvents}}).at(0);
  std::vector<std::string> events;
  for (const auto& event : table.at("events")) {
    events.push_back(event.at("event"));
  }
  EXPECT_THAT(events, ElementsAre("cpu-clock", "cycles", "instructions", "context-switches"));
  const auto& load = table.at("rows").at(0);
  EXPECT_EQ(load.at("self"), nlohmann::json({30, 1000, 2500, 2'000'000'000}));
  EXPECT_EQ(load.at("samples"), nlohmann::json({3, 1, 1, 1}));
  EXPECT_EQ(load.at("ipc"), 2.5);
  const auto shown = text({.view = {.view = View::kEvents}});
  EXPECT_THAT(shown, HasSubstr("30 ns    1000          2500  2.00 s  2.50  load"));
}

TEST_F(Views, AnnotationsHaveTheSharesOfLines) {
  add(4, 3);
  add(6, 1);
  wait(7, 1'000'000);
  const auto shown =
      text({.view = {.view = View::kAnnotate, .function = "load"}, .read_source = &Views::source});
  EXPECT_THAT(shown, HasSubstr("it is newer\n"));
  EXPECT_THAT(shown, HasSubstr("\n                                 4    def load(self):\n"));
  EXPECT_THAT(shown, HasSubstr("\n 75.0%      3     3              7      a()\n"));
  EXPECT_THAT(shown, HasSubstr("\n 25.0%      1     1  1.00 ms     8      b()\n"));
  EXPECT_THAT(shown, Not(HasSubstr("import x")));
  const auto table = json({.view = {.view = View::kAnnotate}, .read_source = [](const auto&, auto) {
                             return SourceFile{.lines = {}, .note = "cannot be read"};
                           }});
  ASSERT_EQ(table.size(), 1U) << "a function that only calls others";
  EXPECT_EQ(table.at(0).at("name"), "load");
  EXPECT_EQ(table.at(0).at("note"), "cannot be read");
  EXPECT_EQ(table.at(0).at("lines").at(0).at("total"), nlohmann::json({3, 0}));
}

// A forged line is no reason for a loop over all lines before it.
TEST_F(Views, AnnotationsOfFarLinesAreShort) {
  profile.frames[7].line = 4'000'000'000;
  add(6, 1);
  const auto shown =
      text({.view = {.view = View::kAnnotate, .function = "load"}, .read_source = &Views::source});
  EXPECT_THAT(shown, HasSubstr("4000000000"));
}

TEST_F(Views, AnnotationsNeedLines) {
  for (auto& frame : profile.frames) {
    frame.line = 0;
  }
  add(5, 1);
  EXPECT_EQ(text({.view = {.view = View::kAnnotate}, .read_source = &Views::source}),
            "nothing: no line numbers in this recording; record with --lines");
}

}  // namespace
}  // namespace pyinject::report
