// Where the things under test are.
#pragma once

#include <string>

namespace pyinject::test {

// The tool that this build made.
[[nodiscard]] inline std::string tool() { return PYINJECT_TOOL; }
// The same, and it can be told to die or to fail (tests/faulty-tool).
[[nodiscard]] inline std::string faulty_tool() { return PYINJECT_FAULTY_TOOL; }
// The folder of small test programs that this build made.
[[nodiscard]] inline std::string targets_dir() { return PYINJECT_TEST_TARGETS; }
// The project's source folder.
[[nodiscard]] inline std::string source_dir() { return PYINJECT_SOURCE_DIR; }

}  // namespace pyinject::test
