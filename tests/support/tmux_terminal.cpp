#include "support/tmux_terminal.hpp"

#include "pyinject/base/error.hpp"
#include "support/patience.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

namespace pyinject::test {

namespace {

using base::Deadline;

// A word of a command for tmux's own parser.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char each : text) {
    result += each == '\'' ? std::string{"'\\''"} : std::string{each};
  }
  return result + "'";
}

}  // namespace

std::string tmux_lacks() {
  try {
    if (run({"tmux", "-V"}).status == ExitStatus{}) {
      return {};
    }
  } catch (const base::Error&) {
    // It is not installed.
  }
  if (std::getenv("PYINJECT_REQUIRE_PYTHONS") != nullptr) {
    ADD_FAILURE() << "tmux is missing";
  }
  return "tmux is not installed";
}

TmuxTerminal::TmuxTerminal(const std::string& command, TerminalSize size) {
  const auto socket = temp_ / "tmux";
  ChildOptions options;
  options.env = {{"HOME", temp_.path().string()}, {"LC_ALL", "C.UTF-8"}, {"SHELL", "/bin/sh"}};
  options.unset = {"TMUX", "TMUX_PANE"};
  // -D: it does not become a daemon, so it cannot outlive the test.
  server_ = std::make_unique<ChildProcess>(
      std::vector<std::string>{"tmux", "-u", "-S", socket, "-D"}, options);
  const auto deadline = Deadline::after(kPatience);
  while (true) {
    // -N: fails until the server is ready. -C: commands on stdin, answers and events on stdout.
    client_ = std::make_unique<ChildProcess>(
        std::vector<std::string>{"tmux", "-u", "-N", "-S", socket, "-C", "new-session", "-x",
                                 std::to_string(size.columns), "-y", std::to_string(size.rows),
                                 command},
        options);
    const auto line = client_->read_line(deadline);
    if (line && line->starts_with("%begin")) {
      break;
    }
    if (deadline.expired() || !server_->running()) {
      throw base::Error{"tmux does not start: " + server_->err() + client_->err()};
    }
  }
  ask("set -g status off");
  ask("set -g window-size manual");
  resize(size);
}

std::string TmuxTerminal::next_line() {
  auto line = client_->read_line(Deadline::after(kPatience));
  if (!line) {
    throw base::Error{"tmux has ended: " + client_->err()};
  }
  return *line;
}

// Between its answers are events: lines with % at the start. The third number of %begin is 1 for
// answers to commands on stdin.
std::string TmuxTerminal::ask(const std::string& command) {
  client_->write(command + "\n");
  std::string line;
  do {
    line = next_line();
  } while (!line.starts_with("%begin ") || !line.ends_with(" 1"));
  const auto numbers = line.substr(line.find(' '));
  std::string answer;
  while (true) {
    line = next_line();
    if (line == "%end" + numbers) {
      return answer;
    }
    if (line == "%error" + numbers) {
      throw base::Error{fmt::format("tmux: {}: {}", command, answer)};
    }
    answer += line + "\n";
  }
}

std::string TmuxTerminal::screen() { return ask("capture-pane -p"); }

bool TmuxTerminal::shows(const std::function<bool(const std::string&)>& wanted) {
  const auto deadline = Deadline::after(kPatience);
  while (!wanted(screen())) {
    // The next event: more output.
    if (!client_->read_line(deadline)) {
      return false;
    }
  }
  return true;
}

bool TmuxTerminal::shows(std::string_view text) {
  return shows([text](const std::string& now) { return now.find(text) != std::string::npos; });
}

void TmuxTerminal::type(const std::string& text) { ask("send-keys -l " + quoted(text)); }

void TmuxTerminal::press(const std::string& key) { ask("send-keys " + key); }

void TmuxTerminal::resize(TerminalSize size) {
  ask(fmt::format("resize-window -x {} -y {}", size.columns, size.rows));
}

std::string TmuxTerminal::value(const std::string& format) {
  auto answer = ask(fmt::format("display-message -p '{}'", format));
  return answer.substr(0, answer.find('\n'));
}

}  // namespace pyinject::test
