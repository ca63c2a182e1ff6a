#include "record/command_interpreter.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "record/resolve_command.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace pyinject::record {

namespace {

constexpr int kMostScripts = 4;              // the kernel's limit on scripts run by scripts
constexpr std::size_t kMostFirstLine = 256;  // bytes that the kernel reads of it (BINPRM_BUF_SIZE)

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// "#!/usr/bin/env python3": its one or two words; empty: not a script.
std::vector<std::string> script_interpreter(const std::string& file) {
  const auto head = base::read_file(file, kMostFirstLine);
  if (!head || !head->starts_with("#!")) {
    return {};
  }
  const std::string_view text{*head};
  auto line = base::trim(text.substr(2, std::min(text.find('\n'), text.size()) - 2));
  const auto end = std::min(line.find_first_of(" \t"), line.size());
  std::vector<std::string> words{std::string{line.substr(0, end)}};
  if (const auto rest = base::trim(line.substr(end)); !rest.empty()) {
    words.emplace_back(rest);
  }
  return words;
}

// The command that env(1) will run; empty: undetermined.
std::vector<std::string> behind_env(const std::vector<std::string>& command) {
  std::vector<std::string> words{command.begin() + 1, command.end()};
  // As in "#!/usr/bin/env -S python3 -u": the kernel passes the rest as one word.
  if (!words.empty() && words.front().starts_with("-S")) {
    std::vector<std::string> split;
    for (const auto piece : base::split(std::string_view{words.front()}.substr(2), ' ')) {
      if (!piece.empty()) {
        split.emplace_back(piece);
      }
    }
    words.erase(words.begin());
    words.insert(words.begin(), split.begin(), split.end());
  }
  while (!words.empty() && words.front().find('=') != std::string::npos) {
    words.erase(words.begin());
  }
  return words.empty() || words.front().starts_with('-') ? std::vector<std::string>{} : words;
}

// The interpreter's own option that makes it ignore its environment.
std::string isolating_option(const std::vector<std::string>& command) {
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string_view word{command[i]};
    if (word.size() < 2 || word.front() != '-' || word == "--") {
      return {};
    }
    if (word.starts_with("--")) {
      i += word == "--check-hash-based-pycs" ? 1 : 0;
      continue;
    }
    for (std::size_t at = 1; at < word.size(); ++at) {
      if (word[at] == 'I' || word[at] == 'E') {
        return std::string{'-', word[at]};
      }
      if (word[at] == 'c' || word[at] == 'm') {
        return {};
      }
      if (word[at] == 'W' || word[at] == 'X') {
        i += at + 1 == word.size() ? 1 : 0;
        break;
      }
    }
  }
  return {};
}

}  // namespace

std::optional<CommandInterpreter> find_command_interpreter(const std::vector<std::string>& command,
                                                           const std::string& path) {
  auto words = command;
  for (int scripts = 0; scripts <= kMostScripts && !words.empty(); ++scripts) {
    const auto file = check_command(words, path).file;
    if (file.empty()) {
      return std::nullopt;
    }
    if (auto script = script_interpreter(file); !script.empty()) {
      script.push_back(file);
      script.insert(script.end(), words.begin() + 1, words.end());
      words = std::move(script);
    } else if (base_name(words.front()) == "env") {
      words = behind_env(words);
    } else {
      auto found = base_name(words.front()).starts_with("python")
                       ? python::find_interpreter_in_file(file)
                       : std::nullopt;
      if (!found) {
        return std::nullopt;
      }
      return CommandInterpreter{.name = std::string{base_name(words.front())},
                                .file = *std::move(found),
                                .isolated = isolating_option(words)};
    }
  }
  return std::nullopt;
}

}  // namespace pyinject::record
