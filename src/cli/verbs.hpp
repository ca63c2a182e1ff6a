// The table of the verbs.
#pragma once

#include "cli/verb.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace pyinject::cli {

extern const VerbSpec kRecordVerb;
extern const VerbSpec kTraceVerb;
extern const VerbSpec kTopVerb;
extern const VerbSpec kSchedVerb;
extern const VerbSpec kKmemVerb;
extern const VerbSpec kJoinVerb;
extern const VerbSpec kFunctionsVerb;
extern const VerbSpec kWeaveVerb;
extern const VerbSpec kActivateVerb;
extern const VerbSpec kDeactivateVerb;
extern const VerbSpec kStatusVerb;

// In the order of --help.
[[nodiscard]] std::span<const VerbSpec* const> verbs();
[[nodiscard]] std::vector<std::string_view> verb_names();
// nullptr: there is none of that NAME.
[[nodiscard]] const VerbSpec* find_verb(std::string_view name);

}  // namespace pyinject::cli
