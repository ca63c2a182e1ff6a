#include "cli/terminal.hpp"

#include "cli/command_line.hpp"

#include <cstdlib>
#include <string_view>

#include <sys/ioctl.h>
#include <unistd.h>

namespace pyinject::cli {

Terminal look_at_terminal() {
  const char* const no_color = std::getenv("NO_COLOR");
  const char* const term = std::getenv("TERM");
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  const bool dumb = term == nullptr || std::string_view{term} == "dumb";
  return {.live = terminal && !dumb,
          .color = terminal && !dumb && (no_color == nullptr || *no_color == '\0')};
}

bool is_live(const CommandLine& line, const Terminal& terminal) {
  return terminal.live && line.verbosity != Verbosity::kQuiet && !line.report.json;
}

std::size_t output_width() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace pyinject::cli
