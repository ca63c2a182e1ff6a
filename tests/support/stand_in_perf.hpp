// Stand-ins for perf that trigger rare behavior at a known moment.
#pragma once

#include "support/temp_dir.hpp"

#include <string>

namespace pyinject::test {

// Returns a perf in FOLDER that runs SCRIPT in place of `perf record`, with the same arguments.
// $PERF is the real perf.
[[nodiscard]] std::string stand_in_perf(const TempDir& directory, const std::string& script);

// A perf whose control commands pass through the command FILTER.
[[nodiscard]] std::string handed_on_perf(const TempDir& directory, const std::string& filter);

// A perf that receives neither `disable` nor `stop`, as when its buffers are never empty.
[[nodiscard]] std::string deaf_perf(const TempDir& directory);

}  // namespace pyinject::test
