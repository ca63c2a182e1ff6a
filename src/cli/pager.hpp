// Long results on a terminal.
#pragma once

#include "cli/terminal.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace pyinject::cli {

// Writes TEXT, a report, to stdout. On a terminal it gets colours. If it is longer than the
// terminal, it goes through a pager: $PERF_PAGER, else $PAGER, else less; none if that is empty or
// cat. Throws base::Error.
void show_report(const std::string& text, const Output& output);

// TEXT with the headings of its tables in bold, and shares of 5 % and 0.5 % in colours, as perf
// report shows them.
[[nodiscard]] std::string painted(std::string_view text);

}  // namespace pyinject::cli
