#include "cli/default_engine.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "cli/command_line.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>

namespace pyinject::cli {

namespace {

using record::EngineName;

constexpr std::size_t kMostConfig = std::size_t{64} << 10U;

std::string variable_or_empty(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Empty: the environment does not tell.
std::string user_config() {
  auto directory = variable_or_empty("XDG_CONFIG_HOME");
  if (!directory.starts_with('/')) {
    const auto home = variable_or_empty("HOME");
    if (!home.starts_with('/')) {
      return {};
    }
    directory = home + "/.config";
  }
  return directory + "/perf-pyinject/config";
}

CommandLineError wrong_setting(const std::string& text) { return {text, record::kFailure}; }

std::optional<EngineName> engine_by_name(std::string_view name) {
  const auto engines = record::engine_names();
  const auto found = std::ranges::find(engines, name, &EngineName::name);
  return found == engines.end() ? std::nullopt : std::optional{*found};
}

// "trampoline, bpf or auto".
std::string list_engines() {
  const auto names = engine_words();
  return fmt::format("{} or {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

// PLACE: FILE:LINE.
DefaultEngine parse_setting(std::string_view line, const std::string& place) {
  const auto equals = line.find('=');
  if (equals == std::string_view::npos) {
    throw wrong_setting(fmt::format("{}: expected KEY = VALUE, as in engine = auto", place));
  }
  const auto key = base::trim(line.substr(0, equals));
  const auto value = base::trim(line.substr(equals + 1));
  if (key != "engine") {
    throw wrong_setting(
        fmt::format("{}: unknown key '{}': the only key is engine", place, base::printable(key)));
  }
  const auto engine = engine_by_name(value);
  if (!engine) {
    throw wrong_setting(
        fmt::format("{}: engine = {}: expected {}", place, base::printable(value), list_engines()));
  }
  return {.engine = *engine, .setting = fmt::format("engine = {} ({})", engine->name, place)};
}

// nullopt: there is no such file, or none that this user can see.
std::optional<std::string> read_config(const std::string& path) {
  const auto name = base::printable(path);
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) {
    if (errno == ENOENT || errno == ENOTDIR || errno == EACCES) {
      return std::nullopt;
    }
    throw wrong_setting(fmt::format("{}: {}", name, std::strerror(errno)));
  }
  const base::UniqueFd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (!file.valid() || ::fstat(file.get(), &facts) != 0) {
    throw wrong_setting(fmt::format("{}: {}", name, std::strerror(errno)));
  }
  if (!S_ISREG(facts.st_mode)) {
    throw wrong_setting(fmt::format("{}: not a regular file", name));
  }
  auto text = base::read_fd(file.get(), kMostConfig + 1, name);
  if (text.size() > kMostConfig) {
    throw wrong_setting(fmt::format("{}: larger than {} KiB", name, kMostConfig >> 10U));
  }
  return text;
}

}  // namespace

std::vector<std::string> engine_words() {
  std::vector<std::string> names;
  for (const auto& one : record::engine_names()) {
    names.emplace_back(one.name);
  }
  return names;
}

DefaultEngineSources default_engine_sources() {
  DefaultEngineSources sources;
  if (auto value = variable_or_empty(kEngineVariable); !value.empty()) {
    sources.variable = std::move(value);
  }
  if (auto own = user_config(); !own.empty() && ::getauxval(AT_SECURE) == 0) {
    sources.files.push_back(std::move(own));
  }
  sources.files.emplace_back(kMachineConfig);
  return sources;
}

std::optional<DefaultEngine> find_default_engine(const DefaultEngineSources& sources) {
  if (sources.variable) {
    const auto setting = fmt::format("{}={}", kEngineVariable, base::printable(*sources.variable));
    const auto engine = engine_by_name(*sources.variable);
    if (!engine) {
      throw wrong_setting(fmt::format("{}: expected {}", setting, list_engines()));
    }
    return DefaultEngine{.engine = *engine, .setting = setting};
  }
  for (const auto& file : sources.files) {
    const auto text = read_config(file);
    if (auto found = text ? parse_config(*text, file) : std::nullopt) {
      return found;
    }
  }
  return std::nullopt;
}

std::optional<DefaultEngine> parse_config(std::string_view text, std::string_view file) {
  std::optional<DefaultEngine> result;
  std::size_t number = 0;
  for (const auto whole : base::split(text, '\n')) {
    ++number;
    const auto line = base::trim(whole.substr(0, whole.find('#')));
    if (!line.empty()) {
      result = parse_setting(line, fmt::format("{}:{}", base::printable(file), number));
    }
  }
  return result;
}

EngineName parse_engine(const std::string& name) {
  const auto engine = engine_by_name(name);
  if (!engine) {
    throw CommandLineError{
        fmt::format("--engine {}: expected {}", base::printable(name), list_engines()),
        record::kUsage};
  }
  return *engine;
}

bool apply_default_engine(const DefaultEngineSearch& search, record::RecordPlan& record) {
  const auto found = search ? search() : std::nullopt;
  if (found) {
    record.engine = found->engine.choice;
    record.engine_setting = found->setting;
  }
  return found.has_value();
}

}  // namespace pyinject::cli
