// Which functions of two recordings are the same, in files that are elsewhere.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace pyinject::report {

// Kind, name and file of a function.
using FunctionKey = std::tuple<int, std::string, std::string>;

// For functions of BEFORE that AFTER does not have: the function of AFTER, which BEFORE does not
// have, with the same kind, name and base name of the file, and with the most directories in common
// at the end of the path: work() of /srv/v2/shop.py for that of /srv/v1/shop.py. None if several
// have as many.
[[nodiscard]] std::map<FunctionKey, FunctionKey> moved_functions(
    const std::vector<FunctionKey>& before, const std::vector<FunctionKey>& after);

}  // namespace pyinject::report
