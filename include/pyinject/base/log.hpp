// Messages for people, always on stderr; stdout carries results only. A Logger is passed to who
// needs it, never reached through a global.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace pyinject::base {

enum class LogLevel { kError, kWarning, kInfo, kDebug };

class Logger {
 public:
  virtual ~Logger() = default;
  Logger() = default;
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  // MESSAGE has no level word and no newline: the implementation adds them.
  virtual void log(LogLevel level, std::string_view message) = 0;

  template <typename... Args>
  void error(fmt::format_string<Args...> format, Args&&... args) {
    log(LogLevel::kError, fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  void warning(fmt::format_string<Args...> format, Args&&... args) {
    log(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  void info(fmt::format_string<Args...> format, Args&&... args) {
    log(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  void debug(fmt::format_string<Args...> format, Args&&... args) {
    log(LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
  }
};

// Writes "perf-pyinject: error: MESSAGE" lines to stderr; info without its level word. Levels above
// MOST are dropped. COLOR: the level word in colour (the caller looks at the terminal and
// NO_COLOR).
class StderrLogger : public Logger {
 public:
  StderrLogger(LogLevel most, bool color) : most_{most}, color_{color} {}
  void log(LogLevel level, std::string_view message) override;

 private:
  LogLevel most_;
  bool color_;
};

}  // namespace pyinject::base
