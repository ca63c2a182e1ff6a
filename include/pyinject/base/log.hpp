// Messages for people, always on stderr; stdout carries only results. A Logger is passed to the
// code that needs it, never reached through a global.
//
// For example:
//   base::StderrLogger messages{base::LogLevel::kWarning, false};
//   messages.log(base::LogLevel::kWarning, "the profile is from yesterday");
#pragma once

#include "pyinject/version.hpp"

#include <string_view>

namespace pyinject::base {

enum class LogLevel { kError, kWarning, kInfo, kDebug };

// A {fmt} format string, checked against ARGS: base/format.hpp.
template <typename... Args>
struct Format;

class Logger {
 public:
  virtual ~Logger() = default;
  Logger() = default;
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  // MESSAGE has neither level word nor newline: the implementation adds both.
  virtual void log(LogLevel level, std::string_view message) = 0;

  // Formatted by {fmt}. For the sources of this library, which include base/format.hpp; users of
  // the library call log() and need no {fmt}.
  template <typename... Args>
  void error(typename Format<Args...>::String format, Args&&... args);
  template <typename... Args>
  void warning(typename Format<Args...>::String format, Args&&... args);
  template <typename... Args>
  void info(typename Format<Args...>::String format, Args&&... args);
  template <typename... Args>
  void debug(typename Format<Args...>::String format, Args&&... args);
};

// Writes "perf-pyinject: error: MESSAGE" lines to stderr; info has no level word. Drops levels
// above MOST. COLOR: print the level word in color (the caller checks the terminal and NO_COLOR).
class StderrLogger : public Logger {
 public:
  StderrLogger(LogLevel most, bool color) : most_{most}, color_{color} {}
  void log(LogLevel level, std::string_view message) override;

 private:
  LogLevel most_;
  bool color_;
};

}  // namespace pyinject::base
