#include "cli/screen.hpp"

#include "base/text.hpp"
#include "pyinject/base/error.hpp"

#if PYINJECT_STATIC
#include "cli/xterm_description.hpp"
#endif

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <clocale>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

// Functions, which have namespaces.
// NOLINTNEXTLINE(cppcoreguidelines-macro-usage)
#define NCURSES_NOMACROS 1
#include <curses.h>
#include <langinfo.h>

namespace pyinject::cli {

namespace {

constexpr short kHotPair = 1;

attr_t attributes_of(live::Style style, bool color) {
  switch (style) {
    case live::Style::kHot:
      return color ? A_BOLD | static_cast<attr_t>(COLOR_PAIR(kHotPair)) : A_BOLD;
    case live::Style::kPlain:
      return A_NORMAL;
    case live::Style::kTitle:
      return A_BOLD;
    case live::Style::kHeading:
      return A_UNDERLINE;
    case live::Style::kSelected:
      return A_REVERSE;
    case live::Style::kFaint:
      return A_DIM;
  }
  return A_NORMAL;
}

std::optional<live::Key> key_of(int code) {
  switch (code) {
    case KEY_UP:
      return live::Key::kUp;
    case KEY_DOWN:
      return live::Key::kDown;
    case KEY_PPAGE:
      return live::Key::kPageUp;
    case KEY_NPAGE:
      return live::Key::kPageDown;
    case KEY_HOME:
      return live::Key::kHome;
    case KEY_END:
      return live::Key::kEnd;
    case KEY_ENTER:
    case '\n':
    case '\r':
      return live::Key::kEnter;
    case KEY_BACKSPACE:
    case '\b':
    case 0x7f:
      return live::Key::kBackspace;
    case 0x1b:
      return live::Key::kEscape;
    default:
      return std::nullopt;
  }
}

}  // namespace

namespace {

// Whether the locale of the environment is UTF-8. ncurses follows the locale.
bool set_locale() {
  (void)std::setlocale(LC_CTYPE, "");
  const bool utf8 = std::string_view{::nl_langinfo(CODESET)} == "UTF-8";
#if PYINJECT_STATIC
  // The converters of other encodings are modules of the machine's C library.
  if (!utf8) {
    (void)std::setlocale(LC_CTYPE, "C");
  }
#endif
  return utf8;
}

// Unlike initscr(), newterm() does not exit if the terminal is unknown.
SCREEN* open_terminal() {
  SCREEN* terminal = ::newterm(nullptr, stdout, stdin);
#if PYINJECT_STATIC
  // Images that contain little more than this program have no descriptions of terminals.
  const char* const name = std::getenv("TERM");
  const auto is_like = [name](std::string_view family) {
    return std::string_view{name}.starts_with(family);
  };
  if (terminal == nullptr && name != nullptr &&
      (is_like("xterm") || is_like("screen") || is_like("tmux"))) {
    ::setenv("TERMINFO", kXtermDescription, 1);
    terminal = ::newterm("xterm-256color", stdout, stdin);
    ::unsetenv("TERMINFO");
  }
#endif
  return terminal;
}

bool can_move_the_cursor() {
  const char* const value = ::tigetstr("cup");
  return value != nullptr && std::bit_cast<std::intptr_t>(value) != -1;
}

}  // namespace

Screen::Screen() : utf8_{set_locale()}, terminal_{open_terminal()} {
  const char* const name = std::getenv("TERM");
  const auto refuse = [name](const std::string& why) {
    throw base::Error{fmt::format("top: {} (TERM={}): use --once", why,
                                  name == nullptr ? "" : base::printable(name))};
  };
  if (terminal_ == nullptr) {
    refuse("unknown terminal");
  }
  if (!can_move_the_cursor()) {
    ::endwin();
    ::delscreen(terminal_);
    refuse("this terminal cannot move its cursor");
  }
  window_ = stdscr;
  const char* const without = std::getenv("NO_COLOR");
  color_ = (without == nullptr || *without == '\0') && ::has_colors() && ::start_color() == OK &&
           ::use_default_colors() == OK && ::init_pair(kHotPair, COLOR_RED, -1) == OK;
  ::cbreak();
  ::noecho();
  ::nodelay(window_, TRUE);
  ::keypad(window_, TRUE);
  ::set_escdelay(25);
  ::curs_set(0);
}

Screen::~Screen() {
  // Terminals without a second screen keep the picture: what follows starts on the last line.
  ::wmove(window_, ::getmaxy(window_) - 1, 0);
  ::wclrtoeol(window_);
  ::wrefresh(window_);
  ::endwin();
  ::delscreen(terminal_);
}

live::Size Screen::size() const {
  return {.columns = static_cast<std::size_t>(std::max(::getmaxx(window_), 1)),
          .rows = static_cast<std::size_t>(std::max(::getmaxy(window_), 1))};
}

void Screen::draw(const std::vector<live::ScreenLine>& lines) {
  ::werase(window_);
  int row = 0;
  for (const auto& line : lines) {
    const auto attributes = attributes_of(line.style, color_);
    ::wattrset(window_, static_cast<int>(attributes));
    ::mvwaddnstr(window_, row, 0, line.text.c_str(), static_cast<int>(line.text.size()));
    if (line.style == live::Style::kSelected) {
      ::mvwchgat(window_, row, 0, -1, attributes, 0, nullptr);
    }
    ++row;
  }
  ::wattrset(window_, A_NORMAL);
  ::wrefresh(window_);
}

std::optional<Screen::Input> Screen::input() {
  while (true) {
    const int code = ::wgetch(window_);
    if (code == ERR) {
      return std::nullopt;
    }
    if (code == KEY_RESIZE) {
      return Resized{};
    }
    if (const auto key = key_of(code)) {
      return *key;
    }
    if (code >= ' ' && code < 0x100) {
      return static_cast<char>(code);
    }
  }
}

}  // namespace pyinject::cli
