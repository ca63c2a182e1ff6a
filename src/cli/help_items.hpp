// The parts of a verb's help text, for manual pages.
#pragma once

#include "cli/verb.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace pyinject::cli {

struct HelpPart {
  enum class Kind { kUsage, kText, kHeading, kItem, kCode };
  Kind kind;
  std::string term;  // kItem: "-p, --pid LIST"
  std::string text;  // kUsage, kCode: lines; others: one line
};

// Each option of VERB is an item. Its text: lines at the left margin are paragraphs; a line that
// ends with a colon is a heading; indented lines are items, or code below "example:" and
// "examples:".
[[nodiscard]] std::vector<HelpPart> help_parts(const VerbSpec& verb);

}  // namespace pyinject::cli
