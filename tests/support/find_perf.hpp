// The perfs of the matrix.
#pragma once

#include <optional>
#include <string>

namespace pyinject::test {

// The perf of that name ("perf", "perf6.12", "perf7"): on PATH, else among the project's roots.
[[nodiscard]] std::optional<std::string> find_perf(const std::string& name);

}  // namespace pyinject::test
