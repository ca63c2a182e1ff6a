#include "cli/verbs.hpp"

#include <algorithm>
#include <array>

namespace pyinject::cli {

namespace {

constexpr std::array kVerbs{
    &record_verb,     &top_verb,    &why_verb,    &dump_verb,      &report_verb, &flamegraph_verb,
    &export_verb,     &serve_verb,  &join_verb,   &functions_verb, &weave_verb,  &activate_verb,
    &deactivate_verb, &status_verb, &doctor_verb, &demo_verb,
};

}  // namespace

std::span<const VerbSpec* const> verbs() { return kVerbs; }

std::vector<std::string_view> verb_names() {
  std::vector<std::string_view> names(kVerbs.size());
  std::ranges::transform(kVerbs, names.begin(), [](const auto* verb) { return verb->name; });
  return names;
}

const VerbSpec* find_verb(std::string_view name) {
  const auto* const found =
      std::ranges::find_if(kVerbs, [&](const auto* verb) { return verb->name == name; });
  return found == kVerbs.end() ? nullptr : *found;
}

}  // namespace pyinject::cli
