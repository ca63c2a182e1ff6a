// The terminal as a full-screen display (ncurses).
#pragma once

#include "live/live_view.hpp"

#include <optional>
#include <variant>
#include <vector>

// ncurses' SCREEN and WINDOW.
struct screen;
struct _win_st;  // NOLINT(bugprone-reserved-identifier)

namespace pyinject::cli {

// One at a time. The destructor restores the terminal.
class Screen {
 public:
  // Throws base::Error if the terminal is unknown.
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  [[nodiscard]] live::Size size() const;
  [[nodiscard]] bool utf8() const { return utf8_; }
  void draw(const std::vector<live::ScreenLine>& lines);

  struct Resized {};
  using Input = std::variant<live::Key, char, Resized>;
  // What was typed; nullopt: nothing more. Does not wait: stdin is readable when there is more.
  [[nodiscard]] std::optional<Input> input();

 private:
  bool utf8_;
  bool color_ = false;  // unless NO_COLOR is set (no-color.org)
  screen* terminal_;
  _win_st* window_ = nullptr;
};

}  // namespace pyinject::cli
