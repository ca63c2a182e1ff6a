// Paths of the programs under test and of the build.
#pragma once

#include <string>

namespace pyinject::test {

// The tool of this build.
[[nodiscard]] std::string tool();
// The same tool with injected crashes and failures (tests/faulty-tool).
[[nodiscard]] std::string faulty_tool();
// The directory of this build's small test programs.
[[nodiscard]] std::string targets_dir();
// The build directory, for `cmake --install`.
[[nodiscard]] std::string build_dir();
// The project's source directory.
[[nodiscard]] std::string source_dir();
// The text of tests/targets/NAME. Throws base::Error if it cannot be read.
[[nodiscard]] std::string target_source(const std::string& name);

}  // namespace pyinject::test
