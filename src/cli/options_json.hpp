// The verbs and their options for programs that make command lines.
#pragma once

#include <string>

namespace pyinject::cli {

// JSON as docs/schemas/options.schema.json describes it.
[[nodiscard]] std::string options_json();

}  // namespace pyinject::cli
