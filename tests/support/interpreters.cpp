#include "support/interpreters.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "pyinject/base/error.hpp"
#include "support/child_process.hpp"
#include "support/interpreter_candidates.hpp"
#include "support/paths.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace pyinject::test {

namespace {

namespace fs = std::filesystem;

struct Answer {
  Interpreter interpreter;  // without its name
  std::string executable;   // sys.executable with all links resolved
};

// nullopt: not CPython, too old, or it does not run. Throws base::Error if it takes too long, since
// the answer is unknown then.
std::optional<Answer> ask(const std::vector<std::string>& command) {
  auto argv = command;
  argv.insert(argv.end(),
              {"-S", "-c",
               "import os, sys\n"
               "if sys.implementation.name == 'cpython':\n"
               "    print(*sys.version_info[:3], int('t' in getattr(sys, 'abiflags', '')),\n"
               "          os.path.realpath(sys.executable), sep='\\t')\n"});
  const auto result = run(argv);
  const auto fields = base::split(base::trim(result.out), '\t');
  if (result.status != ExitStatus{} || fields.size() != 5) {
    return std::nullopt;
  }
  const auto number = [&](std::size_t i) { return base::parse_number<int>(fields[i]).value_or(0); };
  if (number(0) != 3 || number(1) < 12) {
    return std::nullopt;
  }
  return Answer{.interpreter = {.name = "",
                                .command = command,
                                .major = number(0),
                                .minor = number(1),
                                .micro = number(2),
                                .free_threaded = number(3) != 0,
                                .root = ""},
                .executable = std::string{fields[4]}};
}

// The interpreter behind a script such as a pyenv shim, if it can be run directly.
std::optional<Answer> ask_behind(const Answer& script) {
  if (::access(script.executable.c_str(), X_OK) != 0) {
    return std::nullopt;
  }
  const auto behind = ask({script.executable});
  return behind && behind->executable == script.executable ? behind : std::nullopt;
}

std::vector<Interpreter> ask_all(const std::vector<Candidate>& candidates) {
  std::vector<Interpreter> found;
  std::set<std::string> executables;
  std::set<std::string> names;
  for (const auto& candidate : candidates) {
    auto answer = ask({candidate.path});
    if (!answer) {
      continue;
    }
    const bool of_roots = candidate.label.find('_') != std::string::npos;
    if (candidate.script && !of_roots) {
      answer = ask_behind(*answer).value_or(*answer);
    }
    if (!executables.insert(candidate.root + answer->executable).second) {
      continue;
    }
    auto& interpreter = answer->interpreter;
    const auto name = fmt::format("py{}_{}{}_{}", interpreter.major, interpreter.minor,
                                  interpreter.free_threaded ? "t" : "", candidate.label);
    interpreter.name = name;
    for (int i = 2; !names.insert(interpreter.name).second; ++i) {
      interpreter.name = fmt::format("{}_{}", name, i);
    }
    interpreter.root = candidate.root;
    found.push_back(std::move(interpreter));
  }
  return found;
}

// The answers of an earlier test process: a fingerprint, an empty line, then one interpreter per
// line.
std::string cache_path() { return targets_dir() + "/interpreters.cache"; }

std::optional<std::vector<Interpreter>> from_cache(const std::string& key) {
  const auto text = base::read_file(cache_path()).value_or("");
  const auto head = key + "\n";
  if (!text.starts_with(head)) {
    return std::nullopt;
  }
  std::vector<Interpreter> found;
  for (const auto line : base::split(std::string_view{text}.substr(head.size()), '\n')) {
    const auto fields = base::split(line, '\t');
    if (fields.size() != 7) {
      continue;
    }
    const auto number = [&](std::size_t i) {
      return base::parse_number<int>(fields[i]).value_or(0);
    };
    found.push_back({.name = std::string{fields[0]},
                     .command = {std::string{fields[1]}},
                     .major = number(2),
                     .minor = number(3),
                     .micro = number(4),
                     .free_threaded = number(5) != 0,
                     .root = std::string{fields[6]}});
  }
  return found;
}

// Test processes run in parallel: write to a temporary file and rename.
void write_cache(const std::string& path, const std::string& text) {
  const auto aside = fmt::format("{}.{}", path, ::getpid());
  const base::UniqueFd fd{::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
  if (!fd.valid()) {
    return;  // an installed or read-only build directory: query each time
  }
  base::write_all(fd.get(), text, aside);
  std::error_code ignored;
  fs::rename(aside, path, ignored);
}

void to_cache(const std::string& key, const std::vector<Interpreter>& found) {
  std::string text = key + "\n";
  for (const auto& one : found) {
    text += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\n", one.name, one.command.at(0), one.major,
                        one.minor, one.micro, one.free_threaded ? 1 : 0, one.root);
  }
  write_cache(cache_path(), text);
}

// What interpreters can do, asked by earlier test processes: each test has a process of its own,
// and some hundred questions at its start would take seconds. A fingerprint, an empty line, then an
// answer and its question per line.
class Answers {
 public:
  Answers() : text_{base::read_file(path()).value_or("")} {
    const auto key = fingerprint(interpreter_candidates()) + "\n";
    if (!text_.starts_with(key)) {
      text_ = key;
    }
    for (const auto line : base::split(std::string_view{text_}.substr(key.size()), '\n')) {
      if (line.size() > 2) {
        known_.emplace(line.substr(2), line.front() == '1');
      }
    }
  }

  template <typename Ask>
  bool get(const std::string& question, const Ask& ask) {
    const auto found = known_.find(question);
    if (found != known_.end()) {
      return found->second;
    }
    const bool answer = ask();
    known_.emplace(question, answer);
    text_ += fmt::format("{} {}\n", answer ? 1 : 0, question);
    write_cache(path(), text_);
    return answer;
  }

 private:
  static std::string path() { return targets_dir() + "/answers.cache"; }

  std::string text_;
  std::map<std::string, bool, std::less<>> known_;
};

std::vector<Interpreter> find() {
  const auto candidates = interpreter_candidates();
  const auto key = fingerprint(candidates);
  if (auto known = from_cache(key)) {
    return *known;
  }
  auto found = ask_all(candidates);
  to_cache(key, found);
  return found;
}

bool by_loader(const Interpreter& interpreter) { return interpreter.name.ends_with("_loader"); }

bool preferred(const Interpreter& one, const Interpreter& best, Prefer prefer) {
  return prefer == Prefer::kChrooted ? best.root.empty() && !one.root.empty() : by_loader(one);
}

std::vector<Interpreter> one_of_each(const std::vector<Interpreter>& all, Prefer prefer) {
  std::map<std::pair<int, bool>, Interpreter> chosen;
  for (const auto& interpreter : all) {
    const auto [best, first] =
        chosen.try_emplace(std::pair{interpreter.minor, interpreter.free_threaded}, interpreter);
    if (!first && preferred(interpreter, best->second, prefer)) {
      best->second = interpreter;
    }
  }
  std::vector<Interpreter> result;
  for (auto& [kind, interpreter] : chosen) {
    result.push_back(std::move(interpreter));
  }
  return result;
}

// An interpreter that its loader runs is the same executable as the chrooted one, which only root
// can run.
std::vector<Interpreter> one_way_each(std::vector<Interpreter> all) {
  std::set<int> chrooted;
  for (const auto& interpreter : all) {
    if (!interpreter.root.empty()) {
      chrooted.insert(interpreter.minor);
    }
  }
  std::erase_if(all,
                [&](const auto& one) { return by_loader(one) && chrooted.contains(one.minor); });
  return all;
}

const std::vector<Interpreter>& whole_matrix() {
  static const std::vector<Interpreter> found = find();
  return found;
}

const std::vector<Interpreter>& matrix() {
  static const std::vector<Interpreter> found =
      std::getenv("PYINJECT_TEST_EACH_VERSION") == nullptr
          ? whole_matrix()
          : one_of_each(whole_matrix(), Prefer::kChrooted);
  return found;
}

bool runs(const Interpreter& interpreter, const std::vector<std::string>& arguments,
          const RunOptions& options = {}) {
  static Answers answers;
  auto argv = interpreter.command;
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  auto question = fmt::format("{}", fmt::join(argv, " "));
  for (const auto& [variable, value] : options.child.env) {
    question += fmt::format(" {}={}", variable, value);
  }
  return answers.get(question, [&] { return run(argv, options).status == ExitStatus{}; });
}

bool has_trampoline(const Interpreter& interpreter) {
  return runs(interpreter, {"-X", "perf", "-c", "pass"});
}

bool has_probes(const Interpreter& interpreter) {
  return interpreter.minor >= 15 && !interpreter.free_threaded;
}

bool selected(const Interpreter& one, const InterpreterSelection& by) {
  return by.minor.value_or(one.minor) == one.minor &&
         by.root.value_or(!one.root.empty()) == !one.root.empty() &&
         by.free_threaded.value_or(one.free_threaded) == one.free_threaded &&
         (by.only_read || by.free_threaded == true || !is_only_read(one)) &&
         (!by.probes || *by.probes == has_probes(one)) &&
         one.name.find(by.name_part) != std::string::npos && (!by.jit || *by.jit == has_jit(one)) &&
         (!by.trampoline || *by.trampoline == has_trampoline(one)) &&
         (by.module.empty() || has_module(one, by.module));
}

}  // namespace

Interpreter newest_interpreter() {
  const auto found = interpreters({.root = false});
  if (found.empty()) {
    throw base::Error{"no interpreter of this machine can be activated"};
  }
  return *std::ranges::max_element(found, {}, &Interpreter::minor);
}

bool is_only_read(const Interpreter& interpreter) {
  return interpreter.free_threaded || is_newer(interpreter);
}

bool is_newer(const Interpreter& interpreter) {
  return interpreter.minor > required_versions().back().second;
}

bool has_jit(const Interpreter& interpreter) {
  RunOptions options;
  options.child.env = {{"PYTHON_JIT", "1"}};
  return interpreter.minor >= 14 &&
         runs(interpreter, {"-c", "import sys; sys.exit(not sys._jit.is_enabled())"}, options);
}

bool has_module(const Interpreter& interpreter, std::string_view module) {
  return runs(interpreter, {"-c", fmt::format("import {}", module)});
}

std::vector<Interpreter> interpreters(const InterpreterSelection& selection) {
  std::vector<Interpreter> result;
  std::ranges::copy_if(selection.whole_matrix ? whole_matrix() : matrix(),
                       std::back_inserter(result),
                       [&](const auto& one) { return selected(one, selection); });
  if (selection.each_version) {
    return one_of_each(result, *selection.each_version);
  }
  return selection.both_ways ? result : one_way_each(std::move(result));
}

std::optional<Interpreter> find_interpreter(const InterpreterSelection& selection) {
  auto both = selection;
  both.both_ways = true;
  auto found = interpreters(both);
  return found.empty() ? std::nullopt : std::optional{std::move(found.front())};
}

std::optional<Interpreter> plain_interpreter(int minor) {
  return find_interpreter({.minor = minor, .root = false, .free_threaded = false});
}

// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const Interpreter& interpreter, std::ostream* stream) { *stream << interpreter.name; }

}  // namespace pyinject::test
