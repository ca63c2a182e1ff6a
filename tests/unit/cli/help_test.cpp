#include "cli/help.hpp"

#include "cli/verb_options.hpp"
#include "cli/verbs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>

namespace pyinject::cli {
namespace {

constexpr auto kLaidOut = std::to_array<Option>({
    under("which processes", rows::kPid),
    not_in_help({"--unseen", "only in the manual page"}),
    under("how", {"--core FILE",
                  "a description that is too long for one line of the terminal, even "
                  "for one and a half"}),
    {"--a-long-name",
     "begins after it, and goes on below the other descriptions as soon as it is long"},
    with_next({"--one N", "the first"}),
    {"--other", "the second"},
    with_next({"-x, --extra", "more"}),
    {"-y, --why", "less"},
    rows::kLogFormat.with("a verb's own text"),
});

TEST(VerbHelp, LaysOptionsOut) {
  VerbSpec verb = dump_verb;
  verb.options = kLaidOut;
  verb.help = "usage: x\n\n{options}\n\nexample:\n  x\n";
  EXPECT_EQ(verb_help(verb), R"(usage: x

which processes:
  -p, --pid LIST   these processes
how:
      --core FILE  a description that is too long for one line of the terminal,
                   even for one and a half
      --a-long-name  begins after it, and goes on below the other descriptions
                   as soon as it is long
      --one N, --other  the first; the second
  -x, -y           more; less
      --log-format json  a verb's own text
  -q, --quiet      only warnings and errors
  -v, --verbose    more messages

example:
  x
)");
}

TEST(VerbHelp, FillsLinesToTheLastColumn) {
  EXPECT_EQ(filled("--x", "12 345 6", 2, 6), "--x 12\n  345\n  6");
  EXPECT_EQ(filled("", "a  b c", 0, 3), "a b\nc");
  EXPECT_EQ(filled("", "too-long b", 0, 3), "too-long\nb");
}

TEST(Options, HaveTheNamesOfTheirTerms) {
  EXPECT_EQ(rows::kPid.long_name(), "pid");
  EXPECT_EQ(rows::kPid.short_name(), 'p');
  EXPECT_TRUE(rows::kPid.has_value());
  EXPECT_EQ(rows::kChildren.long_name(), "children");
  EXPECT_EQ(rows::kChildren.short_name(), 0);
  EXPECT_FALSE(rows::kChildren.has_value());
  EXPECT_FALSE(rows::kAllCpus.has_value());
}

TEST(Options, AreDescribedOnceInEachVerb) {
  for (const auto* const verb : verbs()) {
    std::set<std::string_view> names;
    std::set<char> letters;
    for (const auto& option : options_of(*verb)) {
      EXPECT_THAT(std::string{option.term},
                  testing::MatchesRegex("(-[a-zA-Z], )?--[a-z]+(-[a-z]+)*( [^ ]+)?"));
      EXPECT_FALSE(option.help.empty()) << option.term;
      EXPECT_TRUE(option.long_name() != "pid" || option.repeats) << verb->name;
      EXPECT_TRUE(names.insert(option.long_name()).second) << verb->name << " " << option.term;
      EXPECT_TRUE(option.short_name() == 0 || letters.insert(option.short_name()).second)
          << verb->name << " " << option.term;
    }
  }
}

}  // namespace
}  // namespace pyinject::cli
