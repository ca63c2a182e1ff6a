// Messages for people, always on stderr; stdout carries results only. A Logger is passed to who
// needs it, never reached through a global.
#pragma once

#include <string_view>

namespace pyinject::base {

enum class LogLevel { kError, kWarning, kInfo, kDebug };

// A format string of {fmt} that is checked against ARGS: base/format.hpp.
template <typename... Args>
struct Format;

class Logger {
 public:
  virtual ~Logger() = default;
  Logger() = default;
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  // MESSAGE has no level word and no newline: the implementation adds them.
  virtual void log(LogLevel level, std::string_view message) = 0;

  // As {fmt} formats it. For the sources of this library, which include base/format.hpp for it; who
  // uses the library calls log() and needs no {fmt}.
  template <typename... Args>
  void error(typename Format<Args...>::String format, Args&&... args);
  template <typename... Args>
  void warning(typename Format<Args...>::String format, Args&&... args);
  template <typename... Args>
  void info(typename Format<Args...>::String format, Args&&... args);
  template <typename... Args>
  void debug(typename Format<Args...>::String format, Args&&... args);
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
