// A test double: messages are kept.
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
  void log(base::LogLevel level, std::string_view message) override;  // by any thread

  // All messages of LEVEL, a line each.
  [[nodiscard]] std::string text(base::LogLevel level) const;

  // In their order. To be read when no thread logs.
  // NOLINTNEXTLINE(cppcoreguidelines-non-private-member-variables-in-classes): a book
  std::vector<std::pair<base::LogLevel, std::string>> lines;

 private:
  mutable std::mutex mutex_;
};

}  // namespace pyinject::fake
