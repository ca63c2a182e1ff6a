#include "unit/docs/documents.hpp"
#include "unit/docs/shell_words.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <regex>

namespace pyinject::test {

namespace {

using Words = std::vector<std::string>;

// "[OPTION...]", "VERB": a synopsis, or a command line that is cut.
bool shortened(const Words& words) {
  return std::ranges::any_of(words, [](const std::string& word) {
    return word.find("...") != std::string::npos || word.starts_with('[') || word == "VERB" ||
           word.starts_with("(-");
  });
}

std::string with_numbers(const std::string& word) {
  static const std::regex pid{R"(^(PID|PERF_PID|TID|\$!|\$pid|\$PID)$)"};
  return std::regex_replace(word, pid, "1");
}

// The words after "perf-pyinject" or "perf pyinject".
std::optional<Words> arguments(const Words& command) {
  const auto tool = std::ranges::find_if(command, [&](const std::string& word) {
    return word == "perf-pyinject" ||
           (word == "pyinject" && &word != command.data() && *(&word - 1) == "perf");
  });
  // After "apt install", "man" and the like it is only a name.
  if (tool == command.end() || std::any_of(command.begin(), tool, [](const std::string& word) {
        return word == "install" || word == "remove" || word == "man" || word == "-w" ||
               word == "command" || word == "systemctl" || word == "journalctl" ||
               word == "pgrep" || word == "help";
      })) {
    return std::nullopt;
  }
  Words found;
  std::transform(tool + 1, command.end(), std::back_inserter(found), with_numbers);
  return shortened(found) ? std::nullopt : std::optional{found};
}

// In prose, "perf-pyinject dump --json" is a name: only its words are checked.
bool is_name(const Words& words) {
  return std::all_of(words.begin() + 1, words.end(),
                     [](const std::string& word) { return word == "--json"; });
}

void add_commands(const std::string& line, bool prose, std::vector<Words>& all) {
  for (const auto& command : shell_commands(line)) {
    if (auto found = arguments(command)) {
      if (prose && !found->empty() && is_name(*found)) {
        found->emplace_back("--help");
      }
      all.push_back(std::move(*found));
    }
  }
}

// The code spans of a paragraph, also those that a line break divides.
std::vector<std::string> spans_of(const std::string& paragraph) {
  static const std::regex code{"`([^`]+)`"};
  std::vector<std::string> spans;
  for (std::sregex_iterator at{paragraph.begin(), paragraph.end(), code};
       at != std::sregex_iterator{}; ++at) {
    spans.push_back(std::regex_replace((*at)[1].str(), std::regex{"\n *"}, " "));
  }
  return spans;
}

}  // namespace

std::vector<Words> commands_of(const Document& document) {
  std::vector<Words> all;
  std::string paragraph;
  std::string code;  // lines that end with a backslash are joined
  const auto end_paragraph = [&] {
    for (const auto& span : spans_of(paragraph)) {
      if (span.starts_with("perf-pyinject ") || span.starts_with("perf pyinject ")) {
        add_commands(span, true, all);
      }
    }
    paragraph.clear();
  };
  for (const auto& line : lines_of(document)) {
    if (!line.code) {
      paragraph += line.text + "\n";
      if (line.text.empty() || line.text.starts_with('|')) {
        end_paragraph();
      }
      continue;
    }
    code += line.text;
    if (code.ends_with('\\')) {
      code.back() = ' ';
      continue;
    }
    add_commands(code, false, all);
    code.clear();
  }
  end_paragraph();
  return all;
}

}  // namespace pyinject::test
