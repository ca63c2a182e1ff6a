#include "support/paths.hpp"

namespace pyinject::test {

std::string tool() { return PYINJECT_TOOL; }
std::string faulty_tool() { return PYINJECT_FAULTY_TOOL; }
std::string targets_dir() { return PYINJECT_TEST_TARGETS; }
std::string build_dir() { return PYINJECT_BUILD_DIR; }
std::string source_dir() { return PYINJECT_SOURCE_DIR; }

}  // namespace pyinject::test
