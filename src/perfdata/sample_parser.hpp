// Parses samples. Pure. perf_event_open(2), "PERF_RECORD_SAMPLE".
#pragma once

#include "perfdata/record.hpp"
#include "perfdata/sample.hpp"

namespace pyinject::perfdata {

// RECORD is a sample of EVENT. False: damaged.
[[nodiscard]] bool parse_sample(const Event& event, const Record& record, Sample& out);

// What a tracepoint or probe has recorded; empty: nothing.
[[nodiscard]] Bytes payload_of(const Sample& sample);

}  // namespace pyinject::perfdata
