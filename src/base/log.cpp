#include "pyinject/base/log.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <string>

namespace pyinject::base {

void StderrLogger::log(LogLevel level, std::string_view message) {
  if (level > most_) {
    return;
  }
  std::string_view word;
  std::string_view color = "\x1b[31m";
  switch (level) {
    case LogLevel::kError:
      word = "error: ";
      break;
    case LogLevel::kWarning:
      word = "warning: ";
      color = "\x1b[33m";
      break;
    case LogLevel::kInfo:
      break;
    case LogLevel::kDebug:
      word = "debug: ";
      color = "\x1b[2m";
      break;
  }
  const bool colored = color_ && !word.empty();
  // One write per message, so that lines of several threads do not mix.
  const std::string line = fmt::format("perf-pyinject: {}{}{}{}\n", colored ? color : "", word,
                                       colored ? "\x1b[0m" : "", message);
  // Nothing can be done about a message that cannot be written.
  (void)std::fwrite(line.data(), 1, line.size(), stderr);
  (void)std::fflush(stderr);
}

}  // namespace pyinject::base
