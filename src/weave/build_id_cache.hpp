// perf's build-id cache: where perf finds a file by its build-id when its path leads nowhere.
#pragma once

#include "pyinject/base/deadline.hpp"

#include <optional>
#include <string>

namespace pyinject::weave {

// Puts FILE, which holds a SymbolImage, into the cache by `PERF buildid-cache --add`. nullopt:
// done, and FILE is to be removed: the cache has a hard link to it where it can. Else why not, for
// a message; the caller then keeps FILE itself. No comma in FILE: perf takes a list.
[[nodiscard]] std::optional<std::string> add_to_build_id_cache(const std::string& perf,
                                                               const std::string& file,
                                                               base::Deadline deadline);

}  // namespace pyinject::weave
