// Corrects record headers. The kernel writes a record for several events in turn, including those
// of other recordings, and header bits set for one event may remain for the next.
#pragma once

#include "perfdata/identity.hpp"
#include "perfdata/record.hpp"

#include <optional>
#include <vector>

#include <linux/perf_event.h>

namespace pyinject::perfdata {

// The correct header of RECORD; nullopt: RECORD has it. INDEX must be that of EVENTS.
[[nodiscard]] std::optional<perf_event_header> corrected_header(const Record& record,
                                                                const std::vector<Event>& events,
                                                                const EventIndex& index);

}  // namespace pyinject::perfdata
