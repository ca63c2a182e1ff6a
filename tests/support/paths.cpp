#include "support/paths.hpp"

#include "base/file.hpp"
#include "pyinject/base/error.hpp"

#include <utility>

namespace pyinject::test {

std::string tool() { return PYINJECT_TOOL; }
std::string faulty_tool() { return PYINJECT_FAULTY_TOOL; }
std::string targets_dir() { return PYINJECT_TEST_TARGETS; }
std::string build_dir() { return PYINJECT_BUILD_DIR; }
std::string source_dir() { return PYINJECT_SOURCE_DIR; }

std::string target_source(const std::string& name) {
  const auto path = source_dir() + "/tests/targets/" + name;
  if (auto text = base::read_file(path)) {
    return *std::move(text);
  }
  throw base::Error{"cannot read " + path};
}

}  // namespace pyinject::test
