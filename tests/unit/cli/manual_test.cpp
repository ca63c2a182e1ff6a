#include "cli/manual.hpp"

#include "cli/help_items.hpp"
#include "cli/verb_options.hpp"
#include "cli/verbs.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

namespace pyinject::cli {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view kDate = "2026-11-25";

std::string unescaped(const std::string& page) {
  return std::regex_replace(page, std::regex{R"(\\-)"}, "-");
}

TEST(Manual, HasEachOptionOfEachVerb) {
  for (const auto* const verb : verbs()) {
    const auto page = unescaped(manual_page(*verb, kDate));
    for (const auto& option : options_of(*verb)) {
      EXPECT_THAT(page, HasSubstr(fmt::format("\n.TP\n.B \"{}\"\n", option.term))) << verb->name;
    }
  }
}

TEST(Manual, HasTheSectionsOfAManualPage) {
  const auto page = unescaped(manual_page(dump_verb, kDate));
  EXPECT_THAT(page, HasSubstr("\n.TH PERF-PYINJECT-DUMP 1 2026-11-25 "));
  EXPECT_THAT(page, HasSubstr("\n.SH NAME\nperf-pyinject-dump - "));
  EXPECT_THAT(page, HasSubstr("\n.SH SYNOPSIS\n.EX\nperf-pyinject dump (PID"));
  EXPECT_THAT(page, HasSubstr("\n.TP\n.B \"--core FILE\"\nthe process in this core file"));
  EXPECT_THAT(page, HasSubstr("\n.SH EXIT STATUS\n0 each process"));
  EXPECT_THAT(page, HasSubstr("\n.SH EXAMPLES\n.EX\nperf-pyinject dump 4711\n"));
  EXPECT_THAT(page, HasSubstr("\n.SH SEE ALSO\n"));
}

TEST(Manual, LeavesNothingToTheFormatter) {
  VerbSpec verb = dump_verb;
  verb.help = "usage: x\n\n.so it's ~/a\\b -- `c`\n";
  EXPECT_THAT(manual_page(verb, kDate),
              HasSubstr("\n\\&.so it\\(aqs \\(ti/a\\eb \\-\\- \\(gac\\(ga\n"));
}

// The error of overall_manual_page().
std::string refused(std::string_view text) {
  try {
    return overall_manual_page(text);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

TEST(OverallManual, HasTheVerbsOfEachOption) {
  std::string text =
      ".\\\" OPTION output why top\nText.\n.\\\" OPTION output weave export flamegraph demo\n";
  std::set<std::string_view> others;
  for (const auto* const verb : verbs()) {
    for (const auto& option : options_of(*verb)) {
      others.insert(option.long_name());
    }
  }
  others.erase("output");
  others.erase("timeline");
  for (const auto other : others) {
    text += fmt::format(".\\\" OPTION {}\n", other);
  }
  const auto page = unescaped(overall_manual_page(text + ".\\\" OTHER OPTIONS\n.SH BUGS\n"));
  EXPECT_THAT(page,
              StartsWith(".TP\n.B \"-o, --output \\fIF\\fP\"\n.RB ( top \", \" why )\nText.\n"));
  EXPECT_THAT(page, HasSubstr(".TP\n.B \"--gil\"\n.RB ( record \", \" join )\n"));
  EXPECT_THAT(page, HasSubstr(".TP\n.B \"-q, --quiet\"\n(all verbs)\n"));
  EXPECT_THAT(page, EndsWith("\n.TP\n.BR perf-pyinject-functions (1)\n.B --timeline\n.SH BUGS\n"));
}

TEST(OverallManual, RefusesOptionsThatNoVerbHasAndVerbsWithoutAnItem) {
  for (const std::string item : {"no-such", "json weave", "json\n.\\\" OPTION json"}) {
    EXPECT_THAT(refused(".\\\" OPTION " + item), StartsWith("OPTION ")) << item;
  }
  EXPECT_EQ(refused(".\\\" OPTION pid top why\n.\\\" OTHER OPTIONS"),
            "no item has --pid of record");
}

TEST(HelpItems, ContinuesDescriptionsAndSeparatesCode) {
  VerbSpec verb = dump_verb;
  verb.help =
      "usage: x\n\nText\nmore.\n\nhow:\n  long   first\n         second\n\nexample:\n  x --long\n";
  const auto parts = help_parts(verb);
  ASSERT_EQ(parts.size(), 6U);
  EXPECT_EQ(parts[1].text, "Text more.");
  EXPECT_EQ(parts[2].text, "how");
  EXPECT_EQ(parts[3].term, "long");
  EXPECT_EQ(parts[3].text, "first second");
  EXPECT_EQ(parts[5].text, "x --long\n");
}

}  // namespace
}  // namespace pyinject::cli
