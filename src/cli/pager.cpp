#include "cli/pager.hpp"

#include "base/file.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>

#include <sys/wait.h>
#include <unistd.h>

namespace pyinject::cli {

namespace {

constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kRed = "\x1b[31m";
constexpr std::string_view kGreen = "\x1b[32m";
constexpr std::string_view kPlain = "\x1b[m";

bool is_installed(const std::string& program) {
  const char* const path = std::getenv("PATH");
  const auto directories = base::split(path == nullptr ? "/usr/bin:/bin" : path, ':');
  return std::ranges::any_of(directories, [&program](std::string_view directory) {
    return ::access(fmt::format("{}/{}", directory, program).c_str(), X_OK) == 0;
  });
}

// For sh(1). Empty: none.
std::string pager() {
  for (const char* const variable : {"PERF_PAGER", "PAGER"}) {
    if (const char* const chosen = std::getenv(variable); chosen != nullptr) {
      return std::string_view{chosen} == "cat" ? "" : chosen;
    }
  }
  return is_installed("less") ? "less" : "";
}

// Whether TEXT and the shell's next prompt fit on the terminal.
bool fits(std::string_view text, std::size_t rows) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n')) < rows;
}

// A line that begins with a share: its length and the share; length 0: none.
std::pair<std::size_t, double> share_of(std::string_view line) {
  const auto begin = line.find_first_not_of(' ');
  const auto end = line.find('%');
  double share = 0;
  if (begin == std::string_view::npos || end == std::string_view::npos) {
    return {0, 0};
  }
  const auto [rest, error] = std::from_chars(line.data() + begin, line.data() + end, share);
  return error == std::errc{} && rest == line.data() + end ? std::pair{end + 1, share}
                                                           : std::pair{std::size_t{0}, 0.0};
}

// The names of columns, of which the first one is a share.
bool is_header(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const auto word = line.substr(0, line.find(' '));
  return word == "share" || word == "self%" || word == "total%" || word == "held%";
}

// A pager that quits before the end closes the pipe.
void write_to_pager(int fd, std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// As git does: less shows colours (R), exits at once if everything fits (F), and leaves the text on
// the screen (X).
bool through_pager(const std::string& command, std::string_view text) {
  if (std::getenv("LESS") == nullptr) {
    (void)::setenv("LESS", "FRX", 1);
  }
  std::FILE* const stream = ::popen(command.c_str(), "we");  // NOLINT(cert-env33-c): the user's own
  auto* const before = std::signal(SIGPIPE, SIG_IGN);        // the pager may quit before the end
  auto* const interrupt = std::signal(SIGINT, SIG_IGN);      // Ctrl-C is the pager's
  if (stream != nullptr) {
    write_to_pager(::fileno(stream), text);
  }
  const int status = stream == nullptr ? -1 : ::pclose(stream);
  (void)std::signal(SIGINT, interrupt);
  (void)std::signal(SIGPIPE, before);
  constexpr int kNotFound = 127;
  constexpr int kNotRunnable = 126;
  return status != -1 && !(WIFEXITED(status) && (WEXITSTATUS(status) == kNotFound ||
                                                 WEXITSTATUS(status) == kNotRunnable));
}

}  // namespace

std::string painted(std::string_view text) {
  constexpr double kMuch = 5;
  constexpr double kSome = 0.5;
  std::string result;
  bool first = true;  // of a table
  for (const auto line : base::split(text, '\n')) {
    const auto [length, share] = share_of(line);
    if (!line.empty() && (first || is_header(line))) {
      result += fmt::format("{}{}{}\n", kBold, line, kPlain);
      first = false;
      continue;
    }
    first = line.empty();
    if (length != 0 && share >= kSome) {
      result += fmt::format("{}{}{}{}\n", share >= kMuch ? kRed : kGreen, line.substr(0, length),
                            kPlain, line.substr(length));
    } else {
      result += fmt::format("{}\n", line);
    }
  }
  result.pop_back();  // TEXT ends with a line break, behind which split() sees an empty line
  return result;
}

void show_report(const std::string& text, const Output& output) {
  const auto shown = output.color ? painted(text) : text;
  const auto command = output.terminal && !fits(text, output_height()) ? pager() : "";
  if (command.empty() || !through_pager(command, shown)) {
    base::write_all(STDOUT_FILENO, shown, "standard output");
  }
}

}  // namespace pyinject::cli
