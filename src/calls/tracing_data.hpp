// Parses the tracepoint formats in perf.data. The bytes are not trusted. Written by linux,
// tools/perf/util/trace-event-info.c.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::calls {

struct TracepointFormat {
  std::string system;  // "sched"; for uprobe events their group
  std::string text;    // as in tracefs, events/SYSTEM/NAME/format
};

// In file order, up to the first damage.
[[nodiscard]] std::vector<TracepointFormat> parse_tracing_data(std::span<const std::byte> bytes);

// TEXT of a format without the expressions of its "print fmt", which are not needed and make
// libtraceevent's parser recurse for each "(". nullopt: longer than the formats of this tool's
// events.
[[nodiscard]] std::optional<std::string> without_expressions(std::string_view text);

}  // namespace pyinject::calls
