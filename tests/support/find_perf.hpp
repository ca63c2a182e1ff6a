// Finds the perf versions that the tests use.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pyinject::test {

// The perf of that name ("perf", "perf6.12", "perf7"): on PATH, otherwise in the project's roots.
[[nodiscard]] std::optional<std::string> find_perf(const std::string& name);

// The first two numbers of the version of the perf at PATH, 0 if it does not tell.
[[nodiscard]] std::pair<int, int> version_of_perf(const std::string& path);

// The perfs that can read a file of RECORDER: an older one does not know all of its attributes.
[[nodiscard]] std::vector<std::string> perfs_that_read(const std::string& recorder);

// A file for the option --kallsyms of perf script, if the test does not look at names of the
// kernel's functions: to read them all takes perf longer than everything else.
[[nodiscard]] const std::string& few_kernel_symbols();

}  // namespace pyinject::test
