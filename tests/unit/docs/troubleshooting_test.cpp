// docs/troubleshooting.md has an entry for each reason, error, warning and usage error of the code.
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
#include <vector>

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
      if (entry.path().extension() == ".cpp" || entry.path().extension() == ".hpp") {
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
  static const std::regex kValue{R"(\{[:.a-z0-9]*\})"};
  return std::regex_replace(message, kValue, "...");
}

// Enough fixed text to search for: more than names of options and "pid".
bool has_words(const std::string& message) {
  static const std::regex kOther{R"(\.\.\.|--?[a-z]+|pid|[^a-z])"};
  const auto fixed = std::regex_replace(key_of(message), kOther, "");
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

// The messages in the first cells of the rows; a cell may have several.
const std::vector<std::string>& entries() {
  static const auto kAll = [] {
    std::vector<std::string> all;
    const auto messages = page().substr(std::min(page().find("## Messages"), page().size()));
    const std::regex row{"\n\\| (`[^|]+`) \\|"};
    const std::regex span{"`([^`]+)`"};
    for (std::sregex_iterator at{messages.begin(), messages.end(), row};
         at != std::sregex_iterator{}; ++at) {
      const auto cell = (*at)[1].str();
      for (std::sregex_iterator one{cell.begin(), cell.end(), span}; one != std::sregex_iterator{};
           ++one) {
        all.push_back((*one)[1]);
      }
    }
    return all;
  }();
  return kAll;
}

// Whether KEY is as ENTRY, where "..." stands for any text.
bool is_as(std::string_view key, std::string_view entry) {
  constexpr std::string_view kAny = "...";
  std::size_t at = 0;
  bool anywhere = false;
  while (!entry.empty()) {
    const auto dots = std::min(entry.find(kAny), entry.size());
    const auto piece = entry.substr(0, dots);
    const bool last = dots == entry.size();
    const auto found = last && anywhere && key.size() >= at + piece.size() ? key.rfind(piece)
                                                                           : key.find(piece, at);
    if (found == std::string_view::npos || found < at || (!anywhere && found != at)) {
      return false;
    }
    at = found + piece.size();
    anywhere = !last;
    entry.remove_prefix(std::min(dots + kAny.size(), entry.size()));
  }
  return anywhere || at == key.size();
}

bool has_entry(const std::string& key) {
  return std::ranges::any_of(entries(), [&](const std::string& entry) {
    return entry == key || (is_as(key, entry) && has_words(entry));
  });
}

void expect_entries(const std::set<std::string>& messages, std::ptrdiff_t least) {
  EXPECT_GE(std::ranges::count_if(messages, has_words), least) << "messages are no longer found";
  for (const auto& message : messages) {
    EXPECT_TRUE(!has_words(message) || has_entry(key_of(message)))
        << "add to " << kPage << ": | `" << key_of(message) << "` | what to do |";
  }
}

// The message in a call of FUNCTION, formatted or not.
std::set<std::string> messages_in(const std::string& function) {
  return found_in_sources(
      function, std::regex{R"re([\w.:]+[({]\s*(?:fmt::format\(\s*)?"((?:[^"\\]|\\.)*)")re"});
}

TEST(Troubleshooting, HasEachErrorMessage) {
  expect_entries(messages_in("error("), 25);
  expect_entries(messages_in("base::Error{"), 20);
}

TEST(Troubleshooting, HasEachUsageError) { expect_entries(messages_in("CommandLineError{"), 50); }

// Also what an examination notes, and what reading a file notes.
TEST(Troubleshooting, HasEachWarning) {
  expect_entries(messages_in("warning("), 60);
  auto notes = messages_in("warnings.push_back(");
  notes.merge(messages_in("warnings.emplace_back("));
  notes.merge(messages_in("notes.push_back("));
  notes.merge(messages_in("notes.emplace_back("));
  expect_entries(notes, 8);
}

TEST(Troubleshooting, EntriesMayHaveAnyValues) {
  EXPECT_TRUE(is_as("pid ...: cannot dump: ...", "... cannot dump: ..."));
  EXPECT_TRUE(is_as("a b a", "...a"));
  EXPECT_TRUE(is_as("...; is gone", "...; is gone"));
  EXPECT_FALSE(is_as("pid ...: cannot dump: ...", "cannot dump: ..."));
  EXPECT_FALSE(is_as("no process ... today", "no process ..., today"));
  EXPECT_FALSE(is_as("no process", "no process, today"));
  EXPECT_FALSE(is_as("no process today", "no process"));
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
  for (const auto& entry : entries()) {
    EXPECT_TRUE(is_in_sources(entry)) << kPage << ": the code has no message `" << entry << "`";
  }
  EXPECT_GE(entries().size(), 150U);
}

}  // namespace
}  // namespace pyinject::test
