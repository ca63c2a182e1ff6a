#include "cli/completion_table.hpp"

#include "base/text.hpp"
#include "cli/help_items.hpp"
#include "cli/recipes.hpp"
#include "cli/verb_options.hpp"
#include "cli/verbs.hpp"
#include "export/formats.hpp"
#include "record/choose_engine.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>

namespace pyinject::cli {

namespace {

struct NamedText {
  std::string_view name;
  std::string_view text;
};

struct NamedKind {
  std::string_view name;
  Completed kind;
};

// Of options whose item in the help text is not a description of one option, or is too long.
constexpr auto kDescriptions = std::to_array<NamedText>({
    {"help", "print the help text"},
    {"version", "print the version and the engines that are built in"},
    {"engine", "how the Python stacks are read"},
    {"what", "the events for these purposes"},
    {"gil", "mark who holds the GIL"},
    {"tasks", "mark which asyncio task runs"},
    {"input", "the recording"},
    {"format", "the format"},
    {"view", "which table"},
    {"log-format", "how messages are printed"},
    {"by", "which functions have rows"},
    {"sort", "sort by this time"},
    {"csv", "for programs, comma-separated"},
    {"once", "print the tables once, without a display"},
    {"repeat", "record for TIME every PERIOD, such as 30s/5m"},
    {"keep", "keep the latest N files of --repeat"},
    {"max-cpu", "sample less often if --repeat takes more of a CPU"},
    {"push", "send each recording of --repeat to this server"},
    {"label", "a label of the profiles of --push"},
    {"push-credentials", "the file with the credentials of --push"},
    {"spool", "the directory for profiles that --push cannot send"},
    {"token-file", "require the token in this file"},
});

// Options of perf record.
constexpr auto kOfPerf = std::to_array<NamedText>({
    {"event", "the event to sample"},
    {"freq", "samples per second"},
    {"count", "events per sample"},
    {"output", "the recording (default: perf.data)"},
    {"call-graph", "how perf unwinds: fp, dwarf or lbr"},
});

// The values of options.
constexpr auto kWords = std::to_array<NamedText>({
    {"log-format", "text json"},
    {"view", "functions lines annotate tree waits events threads processes tasks gil"},
    {"by", "python native mixed"},
    {"sort", "self total"},
    {"call-graph", "fp dwarf lbr"},
});

constexpr auto kKinds = std::to_array<NamedKind>({
    {"pid", Completed::kPids},
    {"uid", Completed::kUsers},
    {"input", Completed::kRecordings},
    {"diff", Completed::kRecordings},
    {"output", Completed::kFiles},
    {"core", Completed::kFiles},
    {"perf", Completed::kFiles},
    {"stats", Completed::kFiles},
    {"push-credentials", Completed::kFiles},
    {"token-file", Completed::kFiles},
    {"mine", Completed::kDirectories},
    {"spool", Completed::kDirectories},
});

struct OperandOfVerb {
  const VerbSpec* verb;
  Completed kind;
};

constexpr auto kOperands = std::to_array<OperandOfVerb>({
    {&record_verb, Completed::kCommand},
    {&report_verb, Completed::kRecordings},
    {&flamegraph_verb, Completed::kRecordings},
    {&export_verb, Completed::kRecordings},
    {&weave_verb, Completed::kRecordings},
    {&join_verb, Completed::kPerfPid},
});

template <typename Named>
std::vector<std::string> names_of(const Named& all) {
  std::vector<std::string> names;
  std::ranges::transform(all, std::back_inserter(names),
                         [](const auto& one) { return std::string{one.name}; });
  return names;
}

// nullopt: OPTION has no fixed values.
std::optional<Completion> fixed_values(std::string_view option) {
  if (option == "engine") {
    return Completion{Completed::kWord, names_of(record::engine_names())};
  }
  if (option == "format") {
    return Completion{Completed::kWord, names_of(exports::formats())};
  }
  if (option == "what") {
    return Completion{Completed::kList, recipe_names()};
  }
  const auto* const found = std::ranges::find(kWords, option, &NamedText::name);
  if (found == kWords.end()) {
    return std::nullopt;
  }
  Completion result{Completed::kWord};
  for (const auto word : base::split(found->text, ' ')) {
    result.words.emplace_back(word);
  }
  return result;
}

Completion value_of(const perf::RecordOption& option) {
  if (option.argument == kFlag) {
    return {};
  }
  if (auto fixed = fixed_values(option.long_name)) {
    return std::move(*fixed);
  }
  const auto* const found = std::ranges::find(kKinds, option.long_name, &NamedKind::name);
  return {found == kKinds.end() ? Completed::kUnknown : found->kind};
}

// True: TERM, "-p, --pid LIST", is of OPTION and of no other.
bool names_only(std::string_view term, const perf::RecordOption& option) {
  bool named = false;
  for (auto word : base::split(term, ' ')) {
    if (word.ends_with(',')) {
      word.remove_suffix(1);
    }
    if (!word.starts_with('-')) {
      continue;
    }
    const bool is_long = word.starts_with("--") && word.substr(2) == option.long_name;
    if (!is_long && !(word.size() == 2 && word[1] == option.short_name)) {
      return false;
    }
    named = true;
  }
  return named;
}

// The beginning of TEXT: one line, and no sentence.
std::string brief(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  const auto condition = text.starts_with("with ") ? text.find(": ") : std::string_view::npos;
  if (condition != std::string_view::npos) {
    text.remove_prefix(condition + 2);
  }
  for (const std::string_view end : {"; ", ". ", ": ", " ("}) {
    text = text.substr(0, text.find(end));
  }
  if (text.size() > kLongest) {
    text = text.substr(0, text.rfind(' ', kLongest));
  }
  return std::string{text};
}

std::string item_of(const VerbSpec& verb, const perf::RecordOption& option) {
  for (const auto& part : parse_help(verb.help)) {
    if (part.kind == HelpPart::Kind::kItem && names_only(part.term, option)) {
      return brief(part.text);
    }
  }
  return {};
}

std::string description_of(const VerbSpec& verb, const perf::RecordOption& option) {
  const auto* const fixed = std::ranges::find(kDescriptions, option.long_name, &NamedText::name);
  if (fixed != kDescriptions.end()) {
    return std::string{fixed->text};
  }
  auto text = item_of(verb, option);
  for (const auto* const other : verbs()) {
    if (text.empty()) {
      text = item_of(*other, option);
    }
  }
  return text;
}

}  // namespace

std::vector<CompletedOption> completed_options(const VerbSpec& verb) {
  std::vector<CompletedOption> result;
  for (const auto& option : verb.options) {
    result.push_back(
        {option.long_name, option.short_name, description_of(verb, option), value_of(option)});
  }
  if (&verb == &record_verb) {
    for (const auto& option : perf::record_options()) {
      const auto* const used = std::ranges::find(kOfPerf, option.long_name, &NamedText::name);
      if (used != kOfPerf.end()) {
        result.push_back(
            {option.long_name, option.short_name, std::string{used->text}, value_of(option)});
      }
    }
  }
  return result;
}

std::vector<CompletedOption> completed_global_options() {
  std::vector<CompletedOption> result;
  for (const auto& option : global_options()) {
    result.push_back({option.long_name, option.short_name, description_of(overview_verb, option),
                      value_of(option)});
  }
  return result;
}

Completion completed_operands(const VerbSpec& verb) {
  const auto* const found = std::ranges::find(kOperands, &verb, &OperandOfVerb::verb);
  return {found == kOperands.end() ? Completed::kNothing : found->kind};
}

}  // namespace pyinject::cli
