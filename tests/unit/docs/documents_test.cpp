// Links and command lines in README.md and docs/.
#include "unit/docs/documents.hpp"

#include "pyinject/base/error.hpp"
#include "support/paths.hpp"
#include "unit/cli/mistake.hpp"
#include "unit/docs/shell_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace pyinject::test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

bool elsewhere(const std::string& link) {
  return link.starts_with("https://") || link.starts_with("http://") || link.starts_with("mailto:");
}

// Empty: LINK leads to a file, and to a heading if it names one.
std::string problem_of(const Document& document, const std::string& link,
                       const std::map<std::string, Document>& all) {
  const auto hash = link.find('#');
  const auto file = link.substr(0, hash);
  const auto path = file.empty()
                        ? fs::path{document.path}
                        : (fs::path{document.path}.parent_path() / file).lexically_normal();
  if (!fs::exists(fs::path{source_dir()} / path)) {
    return "no such file";
  }
  if (hash == std::string::npos) {
    return "";
  }
  const auto target = all.find(path.string());
  if (target == all.end()) {
    return "an anchor in a file that is not Markdown";
  }
  return anchors_of(target->second).contains(link.substr(hash + 1)) ? "" : "no such heading";
}

TEST(Documents, LinksLeadToFilesAndHeadings) {
  std::map<std::string, Document> all;
  for (auto& document : documents()) {
    all.emplace(document.path, document);
  }
  std::size_t links = 0;
  for (const auto& [path, document] : all) {
    for (const auto& link : links_of(document)) {
      if (!elsewhere(link)) {
        EXPECT_EQ(problem_of(document, link, all), "") << path << ": " << link;
        ++links;
      }
    }
  }
  EXPECT_GE(links, 100U) << "links are no longer found";
}

// Each page of docs/ is in the index.
TEST(Documents, TheIndexHasEachPage) {
  const Document index{"docs/README.md", source_text("docs/README.md")};
  const auto links = links_of(index);
  for (const auto& document : documents()) {
    const fs::path path{document.path};
    if (path.parent_path() == "docs" && path.filename() != "README.md") {
      EXPECT_THAT(links, testing::Contains(testing::StartsWith(path.filename().string())))
          << document.path << " is not in docs/README.md";
    }
  }
}

TEST(Documents, TheReadmeIsShort) {
  const auto text = source_text("README.md");
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 150)
      << "move what a new user does not need at once to docs/";
}

TEST(Documents, CommandLinesAreValid) {
  std::size_t commands = 0;
  for (const auto& document : documents()) {
    for (const auto& words : commands_of(document)) {
      const auto found = cli::mistake(words);
      EXPECT_EQ(found.text, "") << document.path << ": perf-pyinject "
                                << fmt::format("{}", fmt::join(words, " "));
      ++commands;
    }
  }
  EXPECT_GE(commands, 100U) << "command lines are no longer found";
}

// The checks themselves.
TEST(Documents, CommandLinesAreRead) {
  EXPECT_THAT(
      shell_commands("$ a 'b c' \"d\"e\\ f | g > file 2 && h # i"),
      ElementsAre(ElementsAre("$", "a", "b c", "de f"), ElementsAre("g", "2"), ElementsAre("h")));
  const Document document{
      "x.md",
      "`perf-pyinject dump\n-p PID` `perf-pyinject dump` `perf-pyinject VERB`\n\n"
      "    $ sudo perf-pyinject why \\\n      -p $! | cat\n"
      "    perf-pyinject: pid 1: no command\n\n"
      "```\nperf pyinject record -p $(pgrep x)\napt install perf-pyinject\n```\n"};
  EXPECT_THAT(commands_of(document),
              ElementsAre(ElementsAre("dump", "-p", "1"), ElementsAre("dump", "--help"),
                          ElementsAre("why", "-p", "1"), ElementsAre("record", "-p", "1")));
}

TEST(Documents, LinksAndHeadingsAreRead) {
  const Document document{"x.md",
                          "# `--stats FILE`\n## Do `a`, b & c\n## Do `a`, b & c\n"
                          "[a](b.md#c) `[no](code)` ![p](p.png)\n\n    [no](code)\n"};
  EXPECT_THAT(links_of(document), ElementsAre("b.md#c", "p.png"));
  EXPECT_THAT(anchors_of(document), ElementsAre("--stats-file", "do-a-b--c", "do-a-b--c-1"));
}

}  // namespace
}  // namespace pyinject::test
