// A test double that keeps the messages.
//
// For example:
//   fake::Logger messages;
//   messages.log(base::LogLevel::kWarning, "too old");
//   const bool warned = messages.text(base::LogLevel::kWarning) == "too old\n";
#pragma once

#include "pyinject/base/log.hpp"

#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pyinject::fake {

class Logger : public base::Logger {
 public:
  void log(base::LogLevel level, std::string_view message) override;  // thread-safe

  // All messages of LEVEL, one per line.
  [[nodiscard]] std::string text(base::LogLevel level) const;

  // In order. Read it only while no thread logs.
  // NOLINTNEXTLINE(cppcoreguidelines-non-private-member-variables-in-classes): a book
  std::vector<std::pair<base::LogLevel, std::string>> lines;

 private:
  mutable std::mutex mutex_;
};

}  // namespace pyinject::fake
