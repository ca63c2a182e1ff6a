// Finds the perf versions that the tests use.
#pragma once

#include <optional>
#include <string>

namespace pyinject::test {

// The perf of that name ("perf", "perf6.12", "perf7"): on PATH, otherwise in the project's roots.
[[nodiscard]] std::optional<std::string> find_perf(const std::string& name);

}  // namespace pyinject::test
