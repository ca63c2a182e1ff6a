// The kernel writes a record for one event after another, also those of other recordings, and what
// it sets in the header for one of them may stay there for the next.
#pragma once

#include "perfdata/identity.hpp"
#include "perfdata/record.hpp"

#include <optional>
#include <vector>

#include <linux/perf_event.h>

namespace pyinject::perfdata {

// That which RECORD should have; nullopt: it is right. EVENTS are those that INDEX is of.
[[nodiscard]] std::optional<perf_event_header> corrected_header(const Record& record,
                                                                const std::vector<Event>& events,
                                                                const EventIndex& index);

}  // namespace pyinject::perfdata
