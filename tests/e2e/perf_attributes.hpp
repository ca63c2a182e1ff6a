// The attributes of events in a recording of ours against those of perf alone.
#pragma once

#include <string>
#include <vector>

namespace pyinject::test {

// How the events in the file OURS differ from those in PERFS, which perf alone recorded with the
// same options, except for what the tool must change (docs/perf-notes.md, "Attributes"). COPIES:
// the tool chose copied stacks by itself.
[[nodiscard]] std::vector<std::string> attribute_differences(const std::string& perfs,
                                                             const std::string& ours, bool copies);

}  // namespace pyinject::test
