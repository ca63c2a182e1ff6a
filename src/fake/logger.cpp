#include "pyinject/fake/logger.hpp"

namespace pyinject::fake {

void Logger::log(base::LogLevel level, std::string_view message) {
  const std::scoped_lock lock{mutex_};
  lines.emplace_back(level, message);
}

std::string Logger::text(base::LogLevel level) const {
  const std::scoped_lock lock{mutex_};
  std::string all;
  for (const auto& [one, message] : lines) {
    if (one == level) {
      all += message + "\n";
    }
  }
  return all;
}

}  // namespace pyinject::fake
