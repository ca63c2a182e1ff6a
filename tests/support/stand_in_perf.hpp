// Stand-ins for perf, to make it do at a known moment what it does rarely.
#pragma once

#include "support/temp_dir.hpp"

#include <string>

namespace pyinject::test {

// A perf in FOLDER that does as SCRIPT says when it is to record, with the arguments of the real
// one, which is $PERF.
[[nodiscard]] std::string stand_in_perf(const TempDir& folder, const std::string& script);

// One that hears of the commands on its control descriptor what the command FILTER lets through.
[[nodiscard]] std::string handed_on_perf(const TempDir& folder, const std::string& filter);

// One that never hears that it is to disable its events, or to stop: as when its buffers are never
// empty.
[[nodiscard]] std::string deaf_perf(const TempDir& folder);

}  // namespace pyinject::test
