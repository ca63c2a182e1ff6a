// Tools that record a whole machine, on a machine of their own.
#pragma once

#include "support/temp_dir.hpp"

#include <nlohmann/json_fwd.hpp>

#include <set>
#include <string>
#include <vector>

namespace pyinject::test {

// What SCRIPT of tests/targets says, run with the tool and a file to record into on a machine of
// its own: a pid namespace with FOLDER as its /tmp, where the file is called `data`. Takes root.
[[nodiscard]] nlohmann::json run_apart(const TempDir& folder, const std::string& script,
                                       const std::vector<std::string>& arguments);

// The functions that perf names in the samples of DATA.
[[nodiscard]] std::set<std::string> names_in(const std::string& data);

}  // namespace pyinject::test
