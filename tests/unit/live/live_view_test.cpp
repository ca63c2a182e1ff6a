#include "live/live_view.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace pyinject::live {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class LiveViewTest : public testing::Test {
 protected:
  LiveViewTest() {
    profile.name({.number = 1, .qualname = "inner", .file = "/srv/app/a.py", .first_line = 10});
    profile.name({.number = 2, .qualname = "outer\x1b", .file = "/srv/app/b.py", .first_line = 20});
    sample::Stack stack;
    stack.pid = 7;
    stack.tid = 8;
    stack.gil = sample::Gil::kHeld;
    stack.frames = {{.code = 1, .line = 11}, {.code = 2, .line = 21}};
    for (int i = 0; i < 50; ++i) {
      profile.add(stack);
    }
    profile.end_interval(seconds{1});
  }
  std::vector<ScreenLine> screen(Size size = {.columns = 80, .rows = 24}) {
    auto lines = view.lines(profile, {.processes = 2, .lost = 3, .frequency = 100}, size);
    EXPECT_EQ(lines.size(), size.rows);
    for (const auto& line : lines) {
      const auto columns = std::ranges::count_if(
          line.text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80; });
      EXPECT_LE(static_cast<std::size_t>(columns), size.columns) << line.text;
    }
    return lines;
  }
  std::string text(Size size = {.columns = 80, .rows = 24}) {
    std::string all;
    for (const auto& line : screen(size)) {
      all += line.text + "\n";
    }
    return all;
  }
  Profile profile{milliseconds{10}};
  LiveView view{false};
};

TEST_F(LiveViewTest, FitsEachTerminal) {
  for (const auto& size : {Size{.columns = 80, .rows = 24}, Size{.columns = 200, .rows = 60},
                           Size{.columns = 20, .rows = 5}, Size{.columns = 1, .rows = 1}}) {
    (void)screen(size);
    view.press(Key::kEnter);
    (void)screen(size);
    view.press('h');
    (void)screen(size);
    view.press('h');
    view.press(Key::kEnter);
  }
}

TEST_F(LiveViewTest, ShowsFunctionsFirst) {
  EXPECT_THAT(text(),
              AllOf(HasSubstr("2 processes  CPU 50%  GIL 50%  3 lost  1 s  50 samples  100"),
                    HasSubstr("[f functions]"),
                    HasSubstr("  50.0    50.0    0.0 unknown inner  /srv/app/a.py:10\n"),
                    HasSubstr("outer\\x1b  /srv/app/b.py:20\n")));
}

TEST_F(LiveViewTest, ShowsNoSharesOfAGilThatNoProcessHas) {
  profile.note_gil(false);
  EXPECT_THAT(text({.columns = 120, .rows = 24}),
              AllOf(HasSubstr("  CPU 50%  no GIL  3 lost"), Not(HasSubstr("GIL%"))));
  EXPECT_THAT(to_text(profile, {}), Not(HasSubstr("GIL%")));
  EXPECT_THAT(to_json(profile, {}), HasSubstr(R"("gil": null)"));
  profile.note_gil(true);
  EXPECT_THAT(text({.columns = 120, .rows = 24}), HasSubstr("  CPU 50%  GIL 50%  3 lost"));
  profile.note_gil(false);
  EXPECT_THAT(to_text(profile, {}), HasSubstr("GIL%"));
}

TEST_F(LiveViewTest, KeepsTheEndsOfPathsAndNames) {
  const auto shown = [](std::string_view name, std::size_t columns) {
    return name_and_place(name, "/srv/app/views/cart.py", 7, columns);
  };
  EXPECT_EQ(shown("add", 30), "add  /srv/app/views/cart.py:7");
  EXPECT_EQ(shown("add", 28), "add  srv/app/views/cart.py:7");
  EXPECT_EQ(shown("add", 20), "add  views/cart.py:7");
  EXPECT_EQ(shown("add", 19), "add  cart.py:7");
  EXPECT_EQ(shown("add", 13), "add");
  EXPECT_EQ(shown("application.<locals>.add", 30), "...ion.<locals>.add  cart.py:7");
  EXPECT_EQ(name_and_place("loads", "/usr/lib/python3.14/json/__init__.py", 300, 40),
            "loads  json/__init__.py:300");
}

TEST_F(LiveViewTest, DropsColumnsToLeaveRoomForNames) {
  const auto heading = [this](std::size_t columns) {
    const auto lines = screen({.columns = columns, .rows = 24});
    return std::ranges::find(lines, Style::kHeading, &ScreenLine::style)->text;
  };
  EXPECT_EQ(heading(120),
            "*SELF%  TOTAL%  SELF s  TOTAL s  GIL%  WAIT% MOSTLY  TREND      FUNCTION");
  EXPECT_EQ(heading(100), "*SELF%  TOTAL%  GIL%  WAIT% MOSTLY  TREND      FUNCTION");
  EXPECT_EQ(heading(90), "*SELF%  TOTAL%  GIL%  WAIT% MOSTLY  FUNCTION");
  EXPECT_EQ(heading(80), "*SELF%  TOTAL%  WAIT% MOSTLY  FUNCTION");
  EXPECT_EQ(heading(60), "*SELF%  TOTAL% FUNCTION");
  view.press('w');
  EXPECT_EQ(heading(60), " SELF%  TOTAL% *WAIT% FUNCTION");
  view.press('5');
  EXPECT_EQ(heading(60), " SELF%  TOTAL% *GIL% FUNCTION");
  view.press('s');
  EXPECT_THAT(text({.columns = 40, .rows = 10}),
              AllOf(HasSubstr("*SELF%  TOTAL% FUNCTION"),
                    HasSubstr("  50.0    50.0 inner  /srv/app/a.py:10\n")));
}

TEST_F(LiveViewTest, NamesTheProcessInTheTitle) {
  const auto title = [this](std::string_view target, std::size_t columns) {
    return view
        .lines(profile, {.frequency = 100, .target = target}, {.columns = columns, .rows = 24})
        .front()
        .text;
  };
  constexpr std::string_view kTarget = "/usr/bin/python3 /srv/shop/shop.py --port 80 (pid 4711)";
  EXPECT_THAT(title(kTarget, 120),
              StartsWith("/usr/bin/python3 /srv/shop/shop.py --port 80 (pid 4711)  CPU 50%"));
  EXPECT_THAT(title(kTarget, 90), StartsWith("python3 shop.py --port 80 (pid 4711)  CPU 50%"));
  EXPECT_THAT(title(kTarget, 70), StartsWith("python3 shop.... (pid 4711)  CPU 50%"));
}

TEST_F(LiveViewTest, TellsBusyRowsFromThoseThatOnlyWait) {
  sample::Stack stack;
  stack.frames = {{.code = 3, .line = 5}};
  profile.add_wait(stack, Use::kSleep, seconds{1});
  stack.frames = {{.code = 1, .line = 11}};
  profile.add(stack, 20, Use::kC);
  profile.end_interval(seconds{1});
  view.press('w');
  const auto lines = screen();
  const auto row = [&](std::string_view text) {
    return *std::ranges::find_if(
        lines, [&](const ScreenLine& line) { return line.text.find(text) != std::string::npos; });
  };
  EXPECT_EQ(row(" inner ").style, Style::kHot);
  EXPECT_EQ(row(" outer").style, Style::kPlain);
  EXPECT_THAT(text({.columns = 80, .rows = 24}), HasSubstr(" 50.0 sleep "));
}

TEST_F(LiveViewTest, SaysThatCFunctionsTakeBpf) {
  constexpr std::string_view kSentence = "C functions are not known without BPF";
  view.press('c');
  const auto shown = [&](bool bpf) {
    const auto lines = view.lines(profile, {.frequency = 100, .bpf = bpf}, {});
    return std::ranges::any_of(lines,
                               [&](const ScreenLine& line) { return line.text == kSentence; });
  };
  EXPECT_TRUE(shown(false));
  EXPECT_FALSE(shown(true));
}

TEST_F(LiveViewTest, ShowsTheStackOnASmallTerminal) {
  (void)screen();
  view.press(Key::kDown);
  view.press(Key::kEnter);
  EXPECT_THAT(text({.columns = 40, .rows = 10}),
              HasSubstr(" outer\\x1b  app/b.py:20\n"
                        "its most frequent stack, innermost funct\n"
                        "  inner  /srv/app/a.py:11\n"));
}

TEST_F(LiveViewTest, ShowsANote) {
  const auto lines = view.lines(profile, {.note = "all have exited"}, {});
  EXPECT_THAT(lines.back().text, StartsWith("all have exited  q quit"));
}

TEST_F(LiveViewTest, SwitchesViews) {
  view.press('l');
  EXPECT_THAT(text(), HasSubstr("inner  /srv/app/a.py:11\n"));
  view.press('t');
  EXPECT_THAT(text(), HasSubstr(" 8 \n"));
  view.press('P');
  EXPECT_THAT(text(), HasSubstr("[P processes]"));
}

TEST_F(LiveViewTest, Sorts) {
  view.press('2');
  EXPECT_EQ(view.order(), Order::kTotal);
  EXPECT_THAT(text(), HasSubstr(" SELF% *TOTAL%"));
  view.press('9');
  EXPECT_EQ(view.order(), Order::kTotal);
}

TEST_F(LiveViewTest, FiltersWhileOneTypes) {
  view.press('/');
  for (const char character : std::string{"b.py"}) {
    view.press(character);
  }
  EXPECT_THAT(text(),
              AllOf(HasSubstr("show only: b.py_"), HasSubstr("outer"), Not(HasSubstr("inner"))));
  view.press(Key::kBackspace);
  EXPECT_THAT(text(), HasSubstr("show only: b.p_"));
  view.press(Key::kEnter);
  EXPECT_THAT(text(), HasSubstr("only 'b.p'  q quit"));
  view.press(Key::kEscape);
  EXPECT_THAT(text(), HasSubstr("inner"));
}

// A letter in a filter is no command.
TEST_F(LiveViewTest, EndsByQ) {
  view.press('/');
  EXPECT_TRUE(view.press('q'));
  view.press(Key::kEnter);
  EXPECT_FALSE(view.press('q'));
}

TEST_F(LiveViewTest, SelectsARowAndShowsItsStack) {
  const auto selected = [this] {
    const auto lines = screen();
    const auto found = std::ranges::find(lines, Style::kSelected, &ScreenLine::style);
    return found == lines.end() ? "" : found->text;
  };
  EXPECT_THAT(selected(), HasSubstr("inner"));
  view.press(Key::kDown);
  EXPECT_THAT(selected(), HasSubstr("outer"));
  view.press(Key::kDown);
  EXPECT_THAT(selected(), HasSubstr("outer"));
  view.press(Key::kHome);
  EXPECT_THAT(selected(), HasSubstr("inner"));
  view.press(Key::kEnter);
  EXPECT_THAT(text(), HasSubstr("innermost function first\n  inner  /srv/app/a.py:11\n"
                                "  outer\\x1b  /srv/app/b.py:21\n"));
}

TEST_F(LiveViewTest, PausesAndResets) {
  view.press('p');
  EXPECT_TRUE(view.paused());
  EXPECT_THAT(text(), HasSubstr("PAUSED"));
  view.press(' ');
  EXPECT_FALSE(view.paused());
  EXPECT_FALSE(view.take_reset());
  view.press('r');
  EXPECT_TRUE(view.take_reset());
  EXPECT_FALSE(view.take_reset());
}

TEST_F(LiveViewTest, KeepsTheSelectedRowOnTheScreen) {
  for (std::uint32_t number = 10; number < 200; ++number) {
    sample::Stack stack;
    stack.frames = {{.code = number, .line = 1}};
    profile.add(stack);
  }
  profile.end_interval(seconds{1});
  (void)screen();
  view.press(Key::kEnd);
  const auto lines = screen();
  EXPECT_NE(std::ranges::find(lines, Style::kSelected, &ScreenLine::style), lines.end());
  view.press(Key::kPageUp);
  EXPECT_THAT(text(), Not(HasSubstr("inner")));
}

// Stacks that are read from outside do not tell: there are no zeros in their place.
TEST_F(LiveViewTest, DividesTheTimeOnlyIfTheStacksTell) {
  sample::Stack stack;
  stack.pid = 7;
  stack.frames = {{.code = 1, .line = 11}};
  profile.add(stack, 20, Use::kC);
  profile.end_interval(seconds{1});
  EXPECT_EQ(uses_text(profile),
            "CPU 35.0%: python 0.0%  c 10.0%  gc 0.0%  import 0.0%  kernel 0.0%  unknown 25.0%");
  const auto with = nlohmann::json::parse(to_json(profile, {.processes = 1, .bpf = true}));
  EXPECT_DOUBLE_EQ(with.at("uses").at("c").get<double>(), 0.1);
  EXPECT_DOUBLE_EQ(with.at("functions").at(0).at("uses").at("unknown").get<double>(), 0.25);
  const auto without = nlohmann::json::parse(to_json(profile, {.processes = 1, .bpf = false}));
  EXPECT_FALSE(without.contains("uses"));
  EXPECT_FALSE(without.at("functions").at(0).contains("uses"));
  const auto shown = [this](const SessionFacts& facts, std::size_t rows) {
    return view.lines(profile, facts, {.columns = 80, .rows = rows}).at(2).text;
  };
  EXPECT_THAT(shown({.bpf = true}, 24), StartsWith("CPU 35.0%: python "));
  EXPECT_THAT(shown({.bpf = false}, 24), Not(HasSubstr("python")));
  EXPECT_THAT(shown({.bpf = true}, 10), Not(HasSubstr("python"))) << "no room";
}

TEST_F(LiveViewTest, SaysThatSamplesLackFunctions) {
  EXPECT_EQ(incompleteness(profile, {.bpf = true}), "");
  sample::Stack stack;
  stack.frames = {{.code = 1, .line = 11}};
  stack.truncated = true;
  profile.add(stack);
  stack.truncated = false;
  stack.frames.push_back({.code = 0});
  profile.add(stack);
  profile.add({});
  const SessionFacts facts{.lost = 3, .bpf = true};
  const std::string sentence =
      "8.9 % of the 56 samples lack Python functions: 1 cut at the root (more than 512 functions, "
      "or memory that was not there), 4 that could not be read (a lower -F helps if records were "
      "lost)";
  EXPECT_EQ(incompleteness(profile, facts), sentence);
  EXPECT_THAT(view.lines(profile, facts, {.columns = 200, .rows = 24}).at(3).text, sentence);
  const auto stacks = nlohmann::json::parse(to_json(profile, facts)).at("stacks");
  EXPECT_EQ(stacks.dump(), R"({"complete":50,"cut":1,"no_python":1,"unread":4})");
}

TEST_F(LiveViewTest, HasTextAndJsonForScripts) {
  EXPECT_THAT(to_text(profile, {}), AllOf(StartsWith(" SELF%  TOTAL%"), HasSubstr(" inner  /srv")));
  const auto json = nlohmann::json::parse(to_json(profile, {.processes = 1, .frequency = 100}));
  EXPECT_EQ(json.at("version"), 2);
  EXPECT_EQ(json.at("functions").at(0).at("name"), "inner");
  EXPECT_EQ(json.at("functions").at(1).at("name"), "outer\\x1b");
  EXPECT_DOUBLE_EQ(json.at("functions").at(0).at("self").get<double>(), 0.5);
  EXPECT_EQ(json.at("lines").at(0).at("line"), 11);
}

TEST_F(LiveViewTest, TellsGreenletsFromTasksInJson) {
  sample::Stack stack;
  stack.frames = {{.code = 1, .line = 11}};
  profile.add(stack, 2, Use::kPython, true);
  stack.task = "[greenlet] inner";
  profile.add(stack, 1, Use::kPython, true);
  const auto json = nlohmann::json::parse(to_json(profile, {.processes = 1}));
  const auto& rows = json.at("tasks");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows.at(0).at("kind"), "greenlet");
  EXPECT_EQ(rows.at(0).at("name"), "[greenlet] inner");
  EXPECT_EQ(rows.at(1).at("kind"), "task");
  EXPECT_FALSE(json.at("threads").at(0).contains("kind"));
}

}  // namespace
}  // namespace pyinject::live
