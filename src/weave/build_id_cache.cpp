#include "weave/build_id_cache.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "pyinject/base/child.hpp"
#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace pyinject::weave {

namespace {

bool says_added(std::string_view line) {
  return line.starts_with("Adding ") && line.ends_with(": Ok");
}

bool says_failed(std::string_view line) { return line.starts_with("Couldn't add "); }

// Without blanks and quotes around it.
std::string_view bare(std::string_view text) {
  text = base::trim(text);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    text = text.substr(1, text.size() - 2);
  }
  return text;
}

std::string home() {
  const char* const home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? home : "";
}

// The value of "dir" in the section "[buildid]" of CONFIGURATION; empty: none.
std::string directory_in(std::string_view configuration) {
  std::string result;
  bool in_section = false;
  for (const auto each : base::split(configuration, '\n')) {
    const auto line = bare(each.substr(0, each.find_first_of("#;")));
    if (line.starts_with('[')) {
      in_section = line.substr(0, line.find(']')) == "[buildid";
      continue;
    }
    const auto equals = line.find('=');
    if (in_section && equals != std::string_view::npos && bare(line.substr(0, equals)) == "dir") {
      result = bare(line.substr(equals + 1));
    }
  }
  return result;
}

std::vector<std::string> configuration_files() {
  if (const char* const only = std::getenv("PERF_CONFIG"); only != nullptr) {
    return {only};
  }
  std::vector<std::string> files{"/etc/perfconfig"};  // a later one wins
  if (!home().empty()) {
    files.push_back(home() + "/.perfconfig");
  }
  return files;
}

}  // namespace

std::string build_id_cache_directory() {
  constexpr std::size_t kMost = std::size_t{1} << 20U;
  std::string directory;
  for (const auto& file : configuration_files()) {
    const auto text = base::read_file(file, kMost);
    const auto found = text ? directory_in(*text) : std::string{};
    directory = found.empty() ? directory : found;
  }
  if (directory.starts_with("~/") && !home().empty()) {
    return home() + directory.substr(1);
  }
  return !directory.empty() ? directory : home().empty() ? "" : home() + "/.debug";
}

std::optional<std::string> add_to_build_id_cache(const std::string& perf, const std::string& file,
                                                 base::Deadline deadline) {
  base::CapturedRun run;
  try {
    run = base::run_captured({perf, "buildid-cache", "-v", "--add", file}, deadline);
  } catch (const base::SystemError& error) {
    return error.what();
  }
  if (!run.status) {
    return fmt::format("{} buildid-cache did not end in time", perf);
  }
  // perf exits with 0 even if it added nothing (6.1 to 7.2): only its -v output tells.
  const auto lines = base::split(run.output, '\n');
  const auto failed = std::ranges::find_if(lines, says_failed);
  if (run.status->success() && failed == lines.end() && std::ranges::any_of(lines, says_added)) {
    return std::nullopt;
  }
  return fmt::format(
      "{} buildid-cache: {}", perf,
      failed != lines.end() ? base::printable(*failed) : base::describe(*run.status));
}

}  // namespace pyinject::weave
