#include "support/find_perf.hpp"

#include "base/text.hpp"

#include <cstdlib>
#include <string_view>

#include <unistd.h>

namespace pyinject::test {
namespace {

std::string environment_value(const char* name, const std::string& otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

std::string roots_bin() {
  const std::string home = environment_value("HOME", "/");
  const std::string cache = environment_value("XDG_CACHE_HOME", home + "/.cache");
  return environment_value("PYINJECT_ROOTS", cache + "/perf-pyinject/roots") + "/bin";
}

bool runnable(const std::string& path) { return ::access(path.c_str(), X_OK) == 0; }

}  // namespace

std::optional<std::string> find_perf(const std::string& name) {
  const std::string path = environment_value("PATH", "/usr/bin:/bin") + ":" + roots_bin();
  for (const std::string_view directory : base::split(path, ':')) {
    const std::string candidate = std::string{directory} + "/" + name;
    if (!directory.empty() && runnable(candidate)) {
      return candidate;
    }
  }
  return std::nullopt;
}

}  // namespace pyinject::test
