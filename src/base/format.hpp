// The formatting half of base/log.hpp, separate so that public headers do not need {fmt}.
#pragma once

#include "pyinject/base/log.hpp"

#include <fmt/format.h>

#include <utility>

namespace pyinject::base {

template <typename... Args>
struct Format {
  using String = fmt::format_string<Args...>;
};

template <typename... Args>
void Logger::error(typename Format<Args...>::String format, Args&&... args) {
  log(LogLevel::kError, fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
void Logger::warning(typename Format<Args...>::String format, Args&&... args) {
  log(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
void Logger::info(typename Format<Args...>::String format, Args&&... args) {
  log(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
void Logger::debug(typename Format<Args...>::String format, Args&&... args) {
  log(LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace pyinject::base
