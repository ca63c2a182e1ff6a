// The part of perf.data with the formats of its tracepoints, taken apart. The bytes are not
// trusted. linux, tools/perf/util/trace-event-info.c writes it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::calls {

struct TracepointFormat {
  std::string system;  // "sched"; of uprobe events their group
  std::string text;    // as in tracefs, events/SYSTEM/NAME/format
};

// In the order of the file, as far as it is undamaged.
[[nodiscard]] std::vector<TracepointFormat> parse_tracing_data(std::span<const std::byte> bytes);

// TEXT of a format without the expressions of its "print fmt", which say nothing that is needed
// here: libtraceevent's parser calls itself for each "(". nullopt: longer than those of our events.
[[nodiscard]] std::optional<std::string> without_expressions(std::string_view text);

}  // namespace pyinject::calls
