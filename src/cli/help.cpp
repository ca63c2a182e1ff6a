#include "cli/help.hpp"

#include "base/text.hpp"
#include "cli/verb_options.hpp"
#include "cli/verbs.hpp"

#include <fmt/format.h>

namespace pyinject::cli {

namespace {

constexpr std::string_view kBeforeVerbs =
    R"(usage: perf-pyinject VERB [OPTION...]

Profiles running CPython 3.12 to 3.15 processes with stock perf: kernel, C and
Python functions in one stack. The processes need no flag and no restart.
Without arguments, it lists the Python processes and the first commands.

)";

constexpr std::string_view kAfterVerbs =
    R"(
record what (options of record; options of perf record also work):
  -p, --pid LIST    these processes; --children: also all Pythons below them
  -a, --all-cpus    all processes; to select: -u USER, --comm GLOB, -G CGROUP
  -- COMMAND        with one of these: record while it runs; without: launch it
  -F, --freq HZ     samples per second
which stacks:
      --engine E    trampoline (default); bpf: read the stacks in the kernel and
                    leave the processes unchanged; auto: bpf where possible
      --what LIST   samples of io, net, locks, alloc, malloc and others
      --off-cpu     show where threads wait and for how long, deadlocks included
      --gil         show who holds the GIL and who waits for it; implies bpf
      --lines       add line numbers to the function names
where the output goes:
  -o, --output FILE  default: perf.data, for perf report
      --repeat TIME/PERIOD  such as 30s/5m: a file for each TIME, every PERIOD
diagnose:
  -v, --verbose     also print perf's messages; --stats FILE: counters as JSON
      --version     print the version and the engines that are built in
  -h, --help        print this text; with a verb: all options of the verb

perf-pyinject(1) describes all options, exit statuses and reasons for refusals.

examples:
  perf-pyinject flamegraph -p 4711 -d 10 -o web.html
  perf-pyinject record -p 4711 -- sleep 30 && perf report
)";

constexpr std::size_t kSummaryColumn = 14;

// "  join        add Python stacks ..."
std::string entry(const VerbSpec& verb) {
  return fmt::format("  {:<{}}{}\n", verb.name, kSummaryColumn - 2, verb.summary);
}

constexpr std::size_t kWidth = 80;

std::string lay_out(std::span<const Choice> choices) {
  constexpr std::size_t kColumn = 15;  // of descriptions
  std::string text;
  for (const auto& [name, help] : choices) {
    text += filled(fmt::format("  {:<{}}", name, kColumn - 3), help, kColumn, kWidth) + "\n";
  }
  return text;
}

std::string lay_out(std::span<const Option> options) {
  constexpr std::size_t kColumn = 19;  // of descriptions
  std::string text;
  std::string term;
  std::string help;
  for (const auto& option : options) {
    if (option.line == HelpLine::kNone) {
      continue;
    }
    text += option.heading.empty() ? "" : fmt::format("{}:\n", option.heading);
    const bool alone = term.empty() && option.line == HelpLine::kOwn;
    term += term.empty() ? "" : ", ";
    term += alone ? option.term : option.term.substr(0, option.term.find(','));
    help += (help.empty() ? "" : "; ") + std::string{option.help};
    if (option.line == HelpLine::kOwn) {
      const auto* const margin = term.starts_with("--") ? "      " : "  ";
      text += filled(fmt::format("{:<{}} ", margin + term, kColumn - 2), help, kColumn, kWidth);
      text += '\n';
      term.clear();
      help.clear();
    }
  }
  return text;
}

}  // namespace

std::string filled(std::string line, std::string_view words, std::size_t indent,
                   std::size_t width) {
  std::string text;
  bool fresh = line.empty();
  for (const auto word : base::split(words, ' ')) {
    if (word.empty()) {
      continue;
    }
    if (!fresh && line.size() + 1 + word.size() > width) {
      text += line + "\n";
      line.assign(indent, ' ');
      fresh = true;
    }
    line += fresh ? "" : " ";
    line += word;
    fresh = false;
  }
  return text + line;
}

std::string verb_help(const VerbSpec& verb) {
  std::string text{verb.help};
  if (verb.choices != nullptr) {
    text.replace(text.find(kChoicesMark), kChoicesMark.size() + 1, lay_out(verb.choices()));
  }
  return text.replace(text.find(kOptionsMark), kOptionsMark.size() + 1, lay_out(options_of(verb)));
}

std::string general_help() {
  std::string text{kBeforeVerbs};
  for (const auto* const verb : verbs()) {
    text += entry(*verb);
  }
  return text + std::string{kAfterVerbs};
}

}  // namespace pyinject::cli
