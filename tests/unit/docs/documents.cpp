#include "unit/docs/documents.hpp"

#include "base/file.hpp"
#include "pyinject/base/error.hpp"
#include "support/paths.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <regex>
#include <sstream>

namespace pyinject::test {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostBytes = std::size_t{1} << 22U;

// "`code`": removed from TEXT; the codes are added to SPANS.
std::string without_code(const std::string& text, std::vector<std::string>* spans = nullptr) {
  static const std::regex code{"`([^`]+)`"};
  if (spans != nullptr) {
    for (std::sregex_iterator at{text.begin(), text.end(), code}; at != std::sregex_iterator{};
         ++at) {
      spans->push_back((*at)[1]);
    }
  }
  return std::regex_replace(text, code, "");
}

std::string anchor_of(std::string heading) {
  static const std::regex link{R"(\[([^\]]*)\]\([^)]*\))"};
  heading = std::regex_replace(heading, link, "$1");
  std::string anchor;
  for (const char one : heading) {
    const auto byte = static_cast<unsigned char>(one);
    if (std::isalnum(byte) != 0 || one == '_' || one == '-') {
      anchor += static_cast<char>(std::tolower(byte));
    } else if (one == ' ') {
      anchor += '-';
    }
  }
  return anchor;
}

}  // namespace

std::string source_text(const std::string& path) {
  const auto text = base::read_file(source_dir() + "/" + path, kMostBytes);
  if (!text) {
    throw base::Error{"cannot read " + path};
  }
  return *text;
}

std::vector<Document> documents() {
  std::vector<std::string> paths{"README.md", "CONTRIBUTING.md"};
  for (const auto& entry : fs::directory_iterator{source_dir() + "/docs"}) {
    if (entry.path().extension() == ".md") {
      paths.push_back("docs/" + entry.path().filename().string());
    }
  }
  std::ranges::sort(paths);
  std::vector<Document> all;
  for (const auto& path : paths) {
    all.push_back({path, source_text(path)});
  }
  return all;
}

std::vector<DocumentLine> lines_of(const Document& document) {
  std::vector<DocumentLine> lines;
  std::istringstream text{document.text};
  bool fenced = false;
  bool indented = false;
  bool blank = true;  // the line before
  for (std::string line; std::getline(text, line);) {
    const bool fence = line.starts_with("```");
    fenced = fenced != fence;
    // An indented block begins after a blank line; four blanks in a list are text.
    indented = line.starts_with("    ") && (indented || blank);
    blank = line.empty();
    lines.push_back({line, !fence && (fenced || indented)});
    indented = indented || (blank && !lines.empty() && lines.back().code);
  }
  return lines;
}

std::vector<std::string> links_of(const Document& document) {
  std::string prose;
  for (const auto& line : lines_of(document)) {
    prose += line.code ? "\n" : line.text + "\n";
  }
  prose = without_code(prose);
  static const std::regex link{R"(\]\(([^)\s]+)\))"};
  std::vector<std::string> targets;
  for (std::sregex_iterator at{prose.begin(), prose.end(), link}; at != std::sregex_iterator{};
       ++at) {
    targets.push_back((*at)[1]);
  }
  return targets;
}

std::set<std::string> anchors_of(const Document& document) {
  std::set<std::string> anchors;
  for (const auto& line : lines_of(document)) {
    const auto marks = line.text.find_first_not_of('#');
    if (line.code || marks == 0 || marks == std::string::npos || line.text[marks] != ' ') {
      continue;
    }
    const auto anchor = anchor_of(line.text.substr(marks + 1));
    auto unique = anchor;
    for (int number = 1; !anchors.insert(unique).second; ++number) {
      unique = anchor + "-" + std::to_string(number);
    }
  }
  return anchors;
}

}  // namespace pyinject::test
