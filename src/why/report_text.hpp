// A report as text for people, and for programs. Pure.
#pragma once

#include "why/report.hpp"

#include <string>

namespace pyinject::why {

// The first line is the verdict. Text from the process is made printable.
[[nodiscard]] std::string to_text(const Report& report);
// docs/why-json.md describes the format. Ends with a line feed.
[[nodiscard]] std::string to_json(const Report& report);

}  // namespace pyinject::why
