// The table of the verbs.
#pragma once

#include "cli/verb.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace pyinject::cli {

extern const VerbSpec record_verb;
extern const VerbSpec top_verb;
extern const VerbSpec why_verb;
extern const VerbSpec report_verb;
extern const VerbSpec flamegraph_verb;
extern const VerbSpec export_verb;
extern const VerbSpec serve_verb;
extern const VerbSpec join_verb;
extern const VerbSpec functions_verb;
extern const VerbSpec weave_verb;
extern const VerbSpec activate_verb;
extern const VerbSpec deactivate_verb;
extern const VerbSpec status_verb;
extern const VerbSpec doctor_verb;
extern const VerbSpec dump_verb;
extern const VerbSpec demo_verb;
// Runs if there are no arguments; not in the table, since it has no name to type.
extern const VerbSpec overview_verb;

// In the order of --help.
[[nodiscard]] std::span<const VerbSpec* const> verbs();
[[nodiscard]] std::vector<std::string_view> verb_names();
// nullptr: no verb with this NAME.
[[nodiscard]] const VerbSpec* find_verb(std::string_view name);

}  // namespace pyinject::cli
