// Where the things under test are.
#pragma once

#include <string>

namespace pyinject::test {

// The tool that this build made.
[[nodiscard]] std::string tool();
// The same, and it can be told to die or to fail (tests/faulty-tool).
[[nodiscard]] std::string faulty_tool();
// The folder of small test programs that this build made.
[[nodiscard]] std::string targets_dir();
// The folder of this build, for `cmake --install`.
[[nodiscard]] std::string build_dir();
// The project's source folder.
[[nodiscard]] std::string source_dir();
// The text of tests/targets/NAME. Throws base::Error when it cannot be read.
[[nodiscard]] std::string target_source(const std::string& name);

}  // namespace pyinject::test
