// Source files of Python functions, by their paths alone.
#pragma once

#include <string_view>

namespace pyinject::base {

// Whether FILE is of Python's standard library: "/usr/lib/python3.13/queue.py".
[[nodiscard]] bool is_standard_library(std::string_view file);

// FILE, or, for one of the standard library, its path there: "asyncio/tasks.py".
[[nodiscard]] std::string_view short_path(std::string_view file);

}  // namespace pyinject::base
