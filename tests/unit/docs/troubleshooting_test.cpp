// docs/troubleshooting.md has an entry for each reason and each error message of the code.
#include "pyinject/python/reason.hpp"
#include "support/paths.hpp"
#include "unit/docs/documents.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <string_view>

namespace pyinject::test {
namespace {

namespace fs = std::filesystem;

constexpr auto kPage = "docs/troubleshooting.md";

const std::string& page() {
  static const auto text = source_text(kPage);
  return text;
}

bool has_row(const std::string& key) {
  return page().find("\n| `" + key + "` |") != std::string::npos;
}

// TEXT with adjacent string literals joined.
std::string with_joined_literals(const std::string& text) {
  std::string joined;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto quote = text.find('"', at);
    const auto next = quote == std::string::npos ? quote : text.find_first_not_of(" \n", quote + 1);
    joined += text.substr(at, quote == std::string::npos ? quote : quote - at);
    if (quote == std::string::npos) {
      break;
    }
    const bool two =
        next != std::string::npos && text[next] == '"' &&
        std::string_view{text}.substr(quote, next - quote).find('\n') != std::string_view::npos;
    joined += two ? "" : "\"";
    at = two ? next + 1 : quote + 1;
  }
  return joined;
}

// All of src/.
const std::string& sources() {
  static const auto kAll = [] {
    std::string all;
    for (const auto& entry : fs::recursive_directory_iterator{source_dir() + "/src"}) {
      if (entry.path().extension() == ".cpp") {
        all += source_text(fs::relative(entry.path(), source_dir()).string());
      }
    }
    return with_joined_literals(all);
  }();
  return kAll;
}

// The first group of WHAT, wherever it begins with MARK.
std::set<std::string> found_in_sources(std::string_view mark, const std::regex& what) {
  constexpr std::ptrdiff_t kLongest = 400;
  std::set<std::string> found;
  const auto& all = sources();
  for (auto at = all.find(mark); at != std::string::npos; at = all.find(mark, at + 1)) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(at);
    std::smatch match;
    if (std::regex_search(begin, begin + std::min(kLongest, all.end() - begin), match, what,
                          std::regex_constants::match_continuous)) {
      found.insert(match[1]);
    }
  }
  return found;
}

// MESSAGE without values: "pid {}: cannot dump: {}" -> "pid ...: cannot dump: ...".
std::string key_of(const std::string& message) {
  return std::regex_replace(message, std::regex{R"(\{[:.a-z0-9]*\})"}, "...");
}

// Enough fixed text to search for: more than names of options and "pid".
bool has_words(const std::string& message) {
  const auto fixed =
      std::regex_replace(key_of(message), std::regex{R"(\.\.\.|--?[a-z]+|pid|[^a-z])"}, "");
  return fixed.size() >= 8;
}

TEST(Troubleshooting, HasEachReasonForRefusingAProcess) {
  for (const auto reason : python::all_reasons()) {
    const auto row = "\n| `" + std::string{name(reason)} + "` | " + std::string{meaning(reason)};
    EXPECT_TRUE(page().find(row) != std::string::npos)
        << "add to " << kPage << ": " << row.substr(1) << " | what to do |";
  }
}

// The reasons of --engine bpf and of join.
TEST(Troubleshooting, HasEachReasonWhyTheMachineCannotBeUsed) {
  auto names =
      found_in_sources(".name = ", std::regex{R"re(\.name = "([a-z_]+)",\s*\.found = )re"});
  names.merge(found_in_sources(" (", std::regex{R"re( \(([a-z]+_[a-z_]+)\)")re"}));
  EXPECT_TRUE(names.contains("no_btf") && names.contains("has_program") &&
              names.contains("no_callchains"))
      << "reasons are no longer found";
  for (const auto& one : names) {
    EXPECT_TRUE(has_row(one)) << "add a row to " << kPage << ": | `" << one
                              << "` | what it means | what to do |";
  }
}

TEST(Troubleshooting, HasEachErrorMessage) {
  const auto messages =
      found_in_sources("error(", std::regex{R"re(error\(\s*"((?:[^"\\]|\\.)*)")re"});
  EXPECT_GE(std::ranges::count_if(messages, has_words), 25) << "messages are no longer found";
  for (const auto& message : messages) {
    EXPECT_TRUE(!has_words(message) || has_row(key_of(message)))
        << "add a row to " << kPage << ": | `" << key_of(message) << "` | what to do |";
  }
}

// The code has every piece of MESSAGE between the values.
bool is_in_sources(const std::string& message) {
  std::size_t at = 0;
  while (at < message.size()) {
    const auto dots = std::min(message.find("...", at), message.size());
    if (sources().find(message.substr(at, dots - at)) == std::string::npos) {
      return false;
    }
    at = dots + 3;
  }
  return true;
}

// No entry for a message that the code no longer has.
TEST(Troubleshooting, HasOnlyMessagesOfTheCode) {
  const auto begin = page().find("## Messages");
  ASSERT_NE(begin, std::string::npos);
  const auto messages = page().substr(begin);
  const std::regex row{"\n\\| `([^`]+)` \\|"};
  int rows = 0;
  for (std::sregex_iterator at{messages.begin(), messages.end(), row}; at != std::sregex_iterator{};
       ++at, ++rows) {
    EXPECT_TRUE(is_in_sources((*at)[1]))
        << kPage << ": the code has no message `" << (*at)[1] << "`";
  }
  EXPECT_GE(rows, 25);
}

}  // namespace
}  // namespace pyinject::test
