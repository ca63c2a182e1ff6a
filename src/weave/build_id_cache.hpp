// perf's build-id cache, where perf finds a file by its build-id if its path does not exist.
#pragma once

#include "pyinject/base/deadline.hpp"

#include <optional>
#include <string>

namespace pyinject::weave {

// Adds FILE, which holds a SymbolImage, to the cache by `PERF buildid-cache --add`. nullopt:
// success; the caller removes FILE, to which the cache has a hard link if possible. Else the cause,
// for a message; the caller then keeps FILE. FILE must not contain a comma: perf takes a list.
[[nodiscard]] std::optional<std::string> add_to_build_id_cache(const std::string& perf,
                                                               const std::string& file,
                                                               base::Deadline deadline);

// The directory of perf's cache: buildid.dir of perf's configuration ($PERF_CONFIG, else
// ~/.perfconfig and /etc/perfconfig), else ~/.debug (linux, tools/perf/util/config.c). Empty: none.
[[nodiscard]] std::string build_id_cache_directory();

}  // namespace pyinject::weave
