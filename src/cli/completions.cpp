#include "cli/completions.hpp"

#include "cli/verb_options.hpp"
#include "cli/verbs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

namespace pyinject::cli {

namespace {

// Of perf record.
constexpr auto kOfPerf = std::to_array<Option>({
    {"-e, --event EVENT", "the event to sample"},
    {"-F, --freq HZ", "samples per second"},
    {"-c, --count N", "events per sample"},
    {"-o, --output FILE", {}, Completed::kFiles, "the recording (default: perf.data)"},
    {"--call-graph MODE", "how perf unwinds the stack", Completed::kWord, {}, "fp dwarf lbr"},
});

// TEXT for bash and zsh.
std::string in_quotes(std::string_view text) {
  std::string result = "'";
  for (const char byte : text) {
    result += byte == '\'' ? "'\\''" : std::string(1, byte);
  }
  return result + "'";
}

std::string in_quotes_of_fish(std::string_view text) {
  std::string result = "'";
  for (const char byte : text) {
    result += byte == '\'' || byte == '\\' ? "\\" : "";
    result += byte;
  }
  return result + "'";
}

// "-p", "--pid".
std::vector<std::string> names(const Option& option) {
  std::vector<std::string> result;
  if (option.short_name() != 0) {
    result.push_back(fmt::format("-{}", option.short_name()));
  }
  result.push_back(fmt::format("--{}", option.long_name()));
  return result;
}

std::string bash_case(const std::string& pattern, const Completion& value) {
  return value.kind == Completed::kNothing ? std::string{}
                                           : fmt::format("    {}) kind={} words={} ;;\n", pattern,
                                                         name(value.kind), in_quotes(value.words));
}

// As an action of zsh's _arguments.
std::string zsh_action(const Completion& value) {
  switch (value.kind) {
    case Completed::kNothing:
    case Completed::kCommand:  // the file of zsh completes it
      return "";
    case Completed::kUnknown:
      return ":value: ";
    case Completed::kWord:
      return fmt::format(":value:({})", value.words);
    case Completed::kList:
      return fmt::format(":list: _values -s , value {}", value.words);
    case Completed::kPids:
      return ":pid: _sequence _perf_pyinject_pids python";
    case Completed::kPerfPid:
      return ":pid of perf:_perf_pyinject_pids perf";
    case Completed::kUsers:
      return ":user:_users";
    case Completed::kRecordings:
      return ":recording:_files -g \"*.data*\"";
    case Completed::kFiles:
      return ":file:_files";
    case Completed::kDirectories:
      return ":directory:_files -/";
  }
  return "";
}

// The specification of an option for _arguments.
std::string zsh_option(const Option& option) {
  std::string description;
  for (const char byte : brief_of(option)) {
    description += byte == ']' || byte == '\\' ? "\\" : "";
    description += byte;
  }
  const auto value = value_of(option);
  const auto all = names(option);
  std::string result;
  for (const auto& name : all) {
    const std::string_view suffix = !option.has_value() ? "" : name.starts_with("--") ? "=" : "+";
    const auto others = all.size() == 1 ? std::string{} : fmt::format("({})", fmt::join(all, " "));
    result +=
        fmt::format("        {}\n", in_quotes(fmt::format("{}{}{}[{}]{}", others, name, suffix,
                                                          description, zsh_action(value))));
  }
  return result;
}

std::string zsh_operands(const Completion& operands) {
  if (operands.kind == Completed::kNothing || operands.kind == Completed::kCommand) {
    return "";
  }
  return fmt::format("        {}\n", in_quotes("*" + zsh_action(operands)));
}

// The arguments of fish's complete for VALUE.
std::string fish_value(const Completion& value) {
  switch (value.kind) {
    case Completed::kNothing:
    case Completed::kCommand:
      return "";
    case Completed::kUnknown:
      return " -x";
    case Completed::kWord:
      return fmt::format(" -x -a {}", in_quotes_of_fish(value.words));
    case Completed::kList:
      return fmt::format(" -x -a '(__perf_pyinject_list {})'", value.words);
    case Completed::kPids:
      return " -x -a '(__perf_pyinject_list (__perf_pyinject_pids python))'";
    case Completed::kPerfPid:
      return " -x -a '(__perf_pyinject_pids perf)'";
    case Completed::kUsers:
      return " -x -a '(__fish_complete_users)'";
    case Completed::kRecordings:
      return " -r -k -a '(__fish_complete_suffix .data)'";
    case Completed::kFiles:
      return " -r -F";
    case Completed::kDirectories:
      return " -x -a '(__fish_complete_directories)'";
  }
  return "";
}

std::string fish_option(const Option& option, std::string_view condition) {
  return fmt::format(
      "complete -c perf-pyinject -n {}{} -l {} -d {}{}\n", in_quotes_of_fish(condition),
      option.short_name() == 0 ? "" : fmt::format(" -s {}", option.short_name()),
      option.long_name(), in_quotes_of_fish(brief_of(option)), fish_value(value_of(option)));
}

}  // namespace

std::string_view name(Completed kind) {
  switch (kind) {
    case Completed::kNothing:
      return "";
    case Completed::kUnknown:
      return "unknown";
    case Completed::kWord:
      return "word";
    case Completed::kList:
      return "list";
    case Completed::kPids:
      return "pids";
    case Completed::kPerfPid:
      return "perf";
    case Completed::kUsers:
      return "users";
    case Completed::kRecordings:
      return "recordings";
    case Completed::kFiles:
      return "files";
    case Completed::kDirectories:
      return "directories";
    case Completed::kCommand:
      return "command";
  }
  return "";
}

std::vector<Option> completed_options(const VerbSpec& verb) {
  auto all = options_of(verb);
  if (verb.operands == Completed::kCommand) {
    all.insert(all.end(), kOfPerf.begin(), kOfPerf.end());
  }
  return all;
}

Completion value_of(const Option& option) {
  if (!option.has_value()) {
    return {};
  }
  return {option.value, option.list == nullptr ? std::string{option.words}
                                               : fmt::format("{}", fmt::join(option.list(), " "))};
}

std::string brief_of(const Option& option) {
  if (!option.brief.empty()) {
    return std::string{option.brief};
  }
  constexpr std::size_t kLongest = 60;
  auto text = option.help;
  for (const std::string_view end : {"; ", ". ", ": ", " ("}) {
    text = text.substr(0, text.find(end));
  }
  if (text.size() > kLongest) {
    text = text.substr(0, text.rfind(' ', kLongest));
  }
  return std::string{text};
}

std::string bash_table() {
  std::string options;
  std::string values;
  std::string operands;
  const auto add = [&](std::string_view verb, const std::span<const Option> all) {
    std::vector<std::string> of_verb;
    for (const auto& option : all) {
      std::vector<std::string> patterns;
      for (const auto& name : names(option)) {
        of_verb.push_back(name);
        patterns.push_back(fmt::format("{}:{}", verb, name));
      }
      values += bash_case(fmt::format("{}", fmt::join(patterns, "|")), value_of(option));
    }
    options += fmt::format("    '{}') options={} ;;\n", verb,
                           in_quotes(fmt::format("{}", fmt::join(of_verb, " "))));
  };
  add("", global_options());
  for (const auto* const verb : verbs()) {
    add(verb->name, completed_options(*verb));
    operands += bash_case(std::string{verb->name}, Completion{verb->operands});
  }
  constexpr std::string_view kFunction = "{}() {{\n  case $1 in\n{}  esac\n}}\n";
  return fmt::format("_perf_pyinject_verbs='{}'\n", fmt::join(verb_names(), " ")) +
         fmt::format(kFunction, "_perf_pyinject_options", options) +
         fmt::format(kFunction, "_perf_pyinject_value", values) +
         fmt::format(kFunction, "_perf_pyinject_operands", operands);
}

std::string zsh_table() {
  std::string result = "_perf_pyinject_verbs=(\n";
  for (const auto* const verb : verbs()) {
    result += fmt::format("  {}\n", in_quotes(fmt::format("{}:{}", verb->name, verb->summary)));
  }
  result += ")\n_perf_pyinject_global=(\n";
  for (const auto& option : global_options()) {
    result += zsh_option(option);
  }
  result += ")\n_perf_pyinject_specify() {\n  case $1 in\n";
  for (const auto* const verb : verbs()) {
    result += fmt::format("    {})\n      specifications=(\n", verb->name);
    for (const auto& option : completed_options(*verb)) {
      result += zsh_option(option);
    }
    result += zsh_operands(Completion{verb->operands}) + "      ) ;;\n";
  }
  return result + "  esac\n}\n";
}

std::string fish_table() {
  std::string result =
      fmt::format("set -g __perf_pyinject_verbs {}\n", fmt::join(verb_names(), " "));
  for (const auto& option : global_options()) {
    result += fish_option(option, "__perf_pyinject_at ''");
  }
  for (const auto* const verb : verbs()) {
    result += fmt::format("complete -c perf-pyinject -n \"__perf_pyinject_at ''\" -a {} -d {}\n",
                          verb->name, in_quotes_of_fish(verb->summary));
    const auto condition = fmt::format("__perf_pyinject_at {}", verb->name);
    for (const auto& option : completed_options(*verb)) {
      result += fish_option(option, condition);
    }
    const auto operands = Completion{verb->operands};
    if (operands.kind == Completed::kCommand) {
      result += fmt::format(
          "complete -c perf-pyinject -n '{}; and __perf_pyinject_in_command' -a "
          "'(__perf_pyinject_command)'\n",
          condition);
    } else if (operands.kind != Completed::kNothing) {
      auto value = fish_value(operands);
      value.replace(0, value.find(" -", 1), "");  // no option: requires nothing
      result +=
          fmt::format("complete -c perf-pyinject -n {}{}\n", in_quotes_of_fish(condition), value);
    }
  }
  return result;
}

}  // namespace pyinject::cli
