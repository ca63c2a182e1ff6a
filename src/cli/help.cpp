#include "cli/help.hpp"

#include "cli/verbs.hpp"

#include <fmt/format.h>

namespace pyinject::cli {

namespace {

constexpr std::string_view kBeforeVerbs =
    R"(usage: perf-pyinject VERB [OPTION...]

Profiles running CPython 3.12 to 3.15 processes with stock perf: kernel, C and
Python functions in one stack. The processes need no flag and no restart.

)";

constexpr std::string_view kAfterVerbs =
    R"(
  -h, --help     this text, or that of a verb: perf-pyinject record --help
      --version  the version, and what is built in

examples:
  perf-pyinject status
  perf-pyinject record -p 4711 -- sleep 30 && perf report
  perf-pyinject record -p 4711 --engine bpf -- sleep 30 && perf report
  perf-pyinject record -- python3 app.py && perf report
)";

constexpr std::size_t kSummaryColumn = 14;

// "  join        add Python stacks ..."; long NAMES have a line of their own.
std::string entry(const std::string& names, std::string_view summary) {
  const bool fits = names.size() + 4 <= kSummaryColumn;
  return fmt::format("  {:<{}}{}{}\n", names, fits ? kSummaryColumn - 2 : 0,
                     fits ? "" : fmt::format("\n{:{}}", "", kSummaryColumn), summary);
}

}  // namespace

std::string general_help() {
  std::string text{kBeforeVerbs};
  const auto all = verbs();
  for (std::size_t i = 0; i < all.size();) {
    const auto summary = all[i]->summary;
    std::string names{all[i]->name};
    while (++i < all.size() && all[i]->summary == summary) {
      names += fmt::format(", {}", all[i]->name);
    }
    text += entry(names, summary);
  }
  return text + std::string{kAfterVerbs};
}

}  // namespace pyinject::cli
