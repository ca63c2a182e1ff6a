// Which functions held the GIL while others waited for it.
#pragma once

#include "report/selection.hpp"
#include "report/tables.hpp"

#include <map>
#include <vector>

namespace pyinject::report {

// For each function that waited for the GIL, by its row: the functions that held it meanwhile, the
// longest first. The time of a wait is shared out among the samples of other threads of the process
// that held the GIL in that time; a wait without such a sample is nobody's.
[[nodiscard]] std::map<RowKey, std::vector<Holder>> gil_holders(const Profile& profile,
                                                                Selection& selection);

}  // namespace pyinject::report
