#include "cli/terminal.hpp"

#include "cli/command_line.hpp"

#include <cstdlib>
#include <string_view>

#include <sys/ioctl.h>
#include <unistd.h>

namespace pyinject::cli {

namespace {

Output look_at(int fd) {
  const char* const no_color = std::getenv("NO_COLOR");
  const char* const term = std::getenv("TERM");
  const bool dumb = term == nullptr || std::string_view{term} == "dumb";
  const bool terminal = ::isatty(fd) == 1 && !dumb;
  return {.terminal = terminal, .color = terminal && (no_color == nullptr || *no_color == '\0')};
}

}  // namespace

Terminal look_at_terminal() {
  const auto messages = look_at(STDERR_FILENO);
  return {.live = messages.terminal, .color = messages.color};
}

Output look_at_output() { return look_at(STDOUT_FILENO); }

bool is_live(const CommandLine& line, const Terminal& terminal) {
  return terminal.live && line.verbosity != Verbosity::kQuiet && !line.report.json;
}

std::size_t output_width() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

std::size_t output_height() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}

}  // namespace pyinject::cli
