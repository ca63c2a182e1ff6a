// Prints calls of functions for people and for programs.
#pragma once

#include "calls/call_times.hpp"
#include "calls/call_trace.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::calls {

using Sink = std::function<void(std::string_view)>;

// One line per function. Names come from the target and are made safe for a terminal.
[[nodiscard]] std::string to_table(const CallTrace& trace, const std::vector<FunctionTimes>& times);

// docs/functions.md describes the fields. Replaces invalid UTF-8.
[[nodiscard]] std::string to_json(const CallTrace& trace, const std::vector<FunctionTimes>& times);

// One line, or one JSON object per line, for each call and return; calls OUT many times.
void write_timeline(const CallTrace& trace, bool json, const Sink& out);

}  // namespace pyinject::calls
