// Runs tools that record a whole machine on an isolated machine.
#pragma once

#include "support/temp_dir.hpp"

#include <nlohmann/json_fwd.hpp>

#include <set>
#include <string>
#include <vector>

namespace pyinject::test {

// Runs SCRIPT of tests/targets with the tool and an output file, and returns its result. The
// isolated machine is a pid namespace with FOLDER as its /tmp, in which the file is `data`. Needs
// root.
[[nodiscard]] nlohmann::json run_apart(const TempDir& directory, const std::string& script,
                                       const std::vector<std::string>& arguments);

// The Python functions in the samples of DATA.
[[nodiscard]] std::set<std::string> names_in(const std::string& data);

}  // namespace pyinject::test
