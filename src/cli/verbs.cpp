#include "cli/verbs.hpp"

#include <algorithm>
#include <array>

namespace pyinject::cli {

namespace {

constexpr std::array kVerbs{
    &kRecordVerb,    &kTraceVerb, &kTopVerb,      &kSchedVerb,      &kKmemVerb,   &kJoinVerb,
    &kFunctionsVerb, &kWeaveVerb, &kActivateVerb, &kDeactivateVerb, &kStatusVerb,
};

}  // namespace

std::span<const VerbSpec* const> verbs() { return kVerbs; }

std::vector<std::string_view> verb_names() {
  std::vector<std::string_view> names;
  for (const auto* const verb : kVerbs) {
    names.push_back(verb->name);
  }
  return names;
}

const VerbSpec* find_verb(std::string_view name) {
  const auto* const found =
      std::ranges::find_if(kVerbs, [&](const auto* verb) { return verb->name == name; });
  return found == kVerbs.end() ? nullptr : *found;
}

}  // namespace pyinject::cli
