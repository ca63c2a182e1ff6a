#include "support/interpreter_candidates.hpp"

#include "base/file.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string_view>

#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::test {

namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool executable_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

std::string beginning(const std::string& path) { return base::read_file(path, 4096).value_or(""); }

// Accepts file names such as "python3.13" or "python3.13t", not "python3.13-config" or
// "python3.13-gdb.py".
bool versioned_name(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) {
    return false;
  }
  name.remove_prefix(prefix.size());
  if (name.ends_with('t')) {
    name.remove_suffix(1);
  }
  return base::parse_number<unsigned>(name).has_value();
}

std::vector<std::string> files_of(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator it{directory, failed}, end; !failed && it != end;
       it.increment(failed)) {
    names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class Candidates {
 public:
  void add(const std::string& path, const std::string& label, const std::string& root = "") {
    std::error_code failed;
    const auto real = fs::canonical(path, failed);
    if (!failed && executable_file(real) && seen_.insert(real.string()).second) {
      list_.push_back({path, label, root, beginning(path).starts_with("#!")});
    }
  }

  void add_given() {
    const auto given = environment("PYINJECT_TEST_PYTHONS");
    for (const auto path : base::split(given, ':')) {
      add(std::string{path}, "given");
    }
  }

  void add_path() {
    const auto path = environment("PATH");
    for (const auto directory : base::split(path, ':')) {
      if (directory.empty()) {
        continue;
      }
      const fs::path base{directory};
      add(base / "python3", "path");
      for (const auto& name : files_of(base)) {
        if (versioned_name(name, "python3.")) {
          add(base / name, "path");
        }
      }
    }
  }

  void add_pyenv() {
    const auto versions = fs::path{environment("HOME")} / ".pyenv" / "versions";
    for (const auto& version : files_of(versions)) {
      add(versions / version / "bin" / "python3", "pyenv");
    }
  }

  // The scripts in ROOTS/bin name the root in which they run: ROOTS/NAME/...
  void add_roots() {
    const fs::path roots = roots_directory();
    add(roots / "built" / "bin" / "python3.12", "built");
    for (const auto& name : files_of(roots / "bin")) {
      const bool chroot = versioned_name(name, "chroot-python3.");
      if (!chroot && !versioned_name(name, "python3.")) {
        continue;
      }
      const auto path = (roots / "bin" / name).string();
      const auto text = beginning(path);
      const auto prefix = roots.string() + "/";
      const auto at = text.find(prefix);
      const auto begin = at == std::string::npos ? text.size() : at + prefix.size();
      const auto root = text.substr(begin, text.find_first_of("/ \"'\n", begin) - begin);
      if (!chroot) {
        add(path, root + "_loader");
      } else if (::geteuid() == 0) {
        add(path, root + "_chroot", prefix + root);
      }
    }
  }

  [[nodiscard]] std::vector<Candidate> take() { return std::move(list_); }

 private:
  static fs::path roots_directory() {
    if (const auto roots = environment("PYINJECT_ROOTS"); !roots.empty()) {
      return roots;
    }
    const auto cache = environment("XDG_CACHE_HOME");
    return (cache.empty() ? fs::path{environment("HOME")} / ".cache" : fs::path{cache}) /
           "perf-pyinject" / "roots";
  }

  std::vector<Candidate> list_;
  std::set<std::string> seen_;
};

std::string file_state(const std::string& path) {
  struct stat found {};
  // Directories also change for unrelated reasons.
  if (::stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) {
    return "";
  }
  return fmt::format("{} {}:{} {} {}.{}\n", path, found.st_dev, found.st_ino, found.st_size,
                     found.st_mtim.tv_sec, found.st_mtim.tv_nsec);
}

// The absolute paths in the text of a script.
std::set<std::string> named_files(std::string_view text) {
  std::set<std::string> paths;
  constexpr std::string_view kEnds = " \t\n\"'`;:=()$";
  std::size_t begin = 0;
  while (begin < text.size()) {
    const auto end = std::min(text.find_first_of(kEnds, begin), text.size());
    const auto word = text.substr(begin, end - begin);
    if (word.starts_with('/')) {
      paths.emplace(word);
    }
    begin = end + 1;
  }
  return paths;
}

}  // namespace

std::vector<Candidate> interpreter_candidates() {
  Candidates candidates;
  candidates.add_given();
  candidates.add_path();
  candidates.add_pyenv();
  candidates.add_roots();
  return candidates.take();
}

std::string fingerprint(const std::vector<Candidate>& candidates) {
  std::string result;
  for (const auto& candidate : candidates) {
    result += fmt::format("{} {} ", candidate.label, candidate.root) + file_state(candidate.path);
    if (candidate.script) {
      const auto text = beginning(candidate.path);
      for (const auto& path : named_files(text)) {
        // As in: chroot ROOT /usr/bin/python3.13
        result += file_state(candidate.root + path);
      }
    }
  }
  return result;
}

}  // namespace pyinject::test
