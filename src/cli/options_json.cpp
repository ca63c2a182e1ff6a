#include "cli/options_json.hpp"

#include "base/text.hpp"
#include "cli/completions.hpp"
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

ordered_json json_of_value(const Option& option) {
  if (!option.has_value()) {
    return nullptr;
  }
  const auto value = value_of(option);
  auto words = ordered_json::array();
  if (!value.words.empty()) {
    for (const auto word : base::split(value.words, ' ')) {
      words.push_back(word);
    }
  }
  return {{"name", option.value_name()}, {"kind", name(value.kind)}, {"words", std::move(words)}};
}

ordered_json json_of(const Option& option) {
  return {{"name", option.long_name()},
          {"short",
           text_or_null(option.short_name() == 0 ? std::string_view{}
                                                 : std::string_view{option.term.substr(1, 1)})},
          {"help", option.help.empty() ? option.brief : option.help},
          {"value", json_of_value(option)},
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
    all.push_back({{"name", verb->name},
                   {"summary", verb->summary},
                   {"operand", text_or_null(name(verb->operands))},
                   {"options", std::move(options)}});
  }
  return ordered_json{{"schema", 1}, {"version", PYINJECT_VERSION}, {"verbs", std::move(all)}}.dump(
             1) +
         "\n";
}

}  // namespace pyinject::cli
