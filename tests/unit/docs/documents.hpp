// The text of README.md and docs/*.md, and what can be checked in it.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::test {

struct Document {
  std::string path;  // relative to the source directory
  std::string text;
};

// README.md, CONTRIBUTING.md and docs/*.md, by path.
[[nodiscard]] std::vector<Document> documents();
// Of the source directory. Throws base::Error if it cannot be read.
[[nodiscard]] std::string source_text(const std::string& path);

// A line of a document, outside or inside of a code block.
struct DocumentLine {
  std::string text;
  bool code = false;
};
[[nodiscard]] std::vector<DocumentLine> lines_of(const Document& document);

// The targets of links and pictures: "(TARGET)" after "]", outside of code.
[[nodiscard]] std::vector<std::string> links_of(const Document& document);
// As the web sites that show Markdown name the headings.
[[nodiscard]] std::set<std::string> anchors_of(const Document& document);

// The arguments of each perf-pyinject command line in the code blocks and the code spans of
// DOCUMENT, as a shell would pass them. Placeholders for pids are "1". Synopses are skipped.
[[nodiscard]] std::vector<std::vector<std::string>> commands_of(const Document& document);

}  // namespace pyinject::test
