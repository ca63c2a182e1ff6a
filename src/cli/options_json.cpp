#include "cli/options_json.hpp"

#include "base/text.hpp"
#include "cli/verb_options.hpp"
#include "cli/verbs.hpp"
#include "pyinject/version.hpp"

#include <nlohmann/json.hpp>

namespace pyinject::cli {

namespace {

using nlohmann::ordered_json;

ordered_json text_or_null(std::string_view text) {
  return text.empty() ? ordered_json(nullptr) : ordered_json(text);
}

std::string_view kind_of(Completed kind) {
  switch (kind) {
    case Completed::kNothing:
    case Completed::kUnknown:
      return "text";
    case Completed::kWord:
      return "word";
    case Completed::kList:
      return "words";
    case Completed::kPids:
      return "pids";
    case Completed::kPerfPid:
      return "perf_pid";
    case Completed::kUsers:
      return "user";
    case Completed::kRecordings:
      return "recording";
    case Completed::kFiles:
      return "file";
    case Completed::kDirectories:
      return "directory";
    case Completed::kCommand:
      return "command";
  }
  return "text";
}

ordered_json value_of(const Option& option) {
  if (!option.has_value()) {
    return nullptr;
  }
  std::vector<std::string> words;
  if (option.list != nullptr) {
    words = option.list();
  } else if (!option.words.empty()) {
    for (const auto word : base::split(option.words, ' ')) {
      words.emplace_back(word);
    }
  }
  return {{"name", option.value_name()}, {"kind", kind_of(option.value)}, {"words", words}};
}

ordered_json json_of(const Option& option) {
  return {{"name", option.long_name()},
          {"short",
           text_or_null(option.short_name() == 0 ? std::string_view{}
                                                 : std::string_view{option.term.substr(1, 1)})},
          {"help", option.brief.empty() ? option.help : option.brief},
          {"value", value_of(option)},
          {"repeats", option.repeats},
          {"needs", text_or_null(option.needs)}};
}

}  // namespace

std::string options_json() {
  auto all = ordered_json::array();
  for (const auto* const verb : verbs()) {
    auto options = ordered_json::array();
    for (const auto& option : options_of(*verb)) {
      options.push_back(json_of(option));
    }
    all.push_back(
        {{"name", verb->name},
         {"summary", verb->summary},
         {"operand", text_or_null(verb->operands == Completed::kNothing ? std::string_view{}
                                                                        : kind_of(verb->operands))},
         {"options", std::move(options)}});
  }
  return ordered_json{{"schema", 1}, {"version", PYINJECT_VERSION}, {"verbs", std::move(all)}}.dump(
             1) +
         "\n";
}

}  // namespace pyinject::cli
