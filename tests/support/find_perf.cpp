#include "support/find_perf.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "support/child_process.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>

#include <cstddef>
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

constexpr std::size_t kMostKernelSymbols = std::size_t{64} << 20U;

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

std::pair<int, int> version_of_perf(const std::string& path) {
  constexpr std::string_view kBefore = "perf version ";
  const auto told = run({path, "--version"}).out;
  const auto at = told.find(kBefore);
  if (at == std::string::npos) {
    return {};
  }
  const auto numbers = base::split(std::string_view{told}.substr(at + kBefore.size()), '.');
  const auto number = [](std::string_view text) {
    text = text.substr(0, text.find_first_not_of("0123456789"));
    return base::parse_number<int>(text).value_or(0);
  };
  return {number(numbers.at(0)), numbers.size() > 1 ? number(numbers[1]) : 0};
}

std::vector<std::string> perfs_that_read(const std::string& recorder) {
  std::vector<std::string> found;
  const auto least = version_of_perf(recorder);
  for (const auto* const name : {"perf", "perf6.12", "perf7"}) {
    if (const auto path = find_perf(name); path && version_of_perf(*path) >= least) {
      found.push_back(*path);
    }
  }
  return found;
}

const std::string& few_kernel_symbols() {
  static const TempDir directory;
  static const std::string path = [] {
    std::string few;
    const auto all = base::read_file("/proc/kallsyms", kMostKernelSymbols).value_or("");
    for (const auto line : base::split(all, '\n')) {
      if (line.ends_with(" _text") || line.ends_with(" _stext") || line.ends_with(" _etext")) {
        few += fmt::format("{}\n", line);
      }
    }
    return directory.file("kallsyms", few);
  }();
  return path;
}

}  // namespace pyinject::test
