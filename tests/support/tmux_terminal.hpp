// A program on a terminal whose screen a test can read: tmux emulates the terminal.
#pragma once

#include "pyinject/base/deadline.hpp"
#include "support/child_process.hpp"
#include "support/temp_dir.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace pyinject::test {

// Why tmux cannot be used; empty: it can. A test failure if PYINJECT_REQUIRE_PYTHONS is set.
[[nodiscard]] std::string tmux_lacks();

struct TerminalSize {
  int columns = 80;
  int rows = 24;
};

// With a tmux server of its own, which ends with this object or with the test.
class TmuxTerminal {
 public:
  // COMMAND: for sh(1). Throws base::Error on failure.
  explicit TmuxTerminal(const std::string& command, TerminalSize size = {});

  // What it shows now: a line of text for each row, without the blanks at its end.
  [[nodiscard]] std::string screen();
  // Wait until the screen is WANTED, or has TEXT; false at the deadline.
  [[nodiscard]] bool shows(const std::function<bool(const std::string&)>& wanted);
  [[nodiscard]] bool shows(std::string_view text);
  // Types TEXT.
  void type(const std::string& text);
  // Presses a key by tmux's name of it: Up, Enter, C-c.
  void press(const std::string& key);
  void resize(TerminalSize size);
  // The value of a tmux format, e.g. "#{cursor_flag}".
  [[nodiscard]] std::string value(const std::string& format);

 private:
  std::string ask(const std::string& command);
  [[nodiscard]] std::string next_line();

  TempDir temp_{"/tmp"};  // the path of a socket is short
  std::unique_ptr<ChildProcess> server_;
  std::unique_ptr<ChildProcess> client_;
};

}  // namespace pyinject::test
