// Rows of tests that record an interpreter by either engine.
#pragma once

#include "support/interpreters.hpp"

#include <gtest/gtest.h>

#include <iosfwd>
#include <string>
#include <vector>

namespace pyinject::test {

struct Recorded {
  Interpreter python;
  std::string engine;
};
// NOLINTNEXTLINE(readability-identifier-naming): the name that GoogleTest looks for
void PrintTo(const Recorded& recorded, std::ostream* stream);
[[nodiscard]] std::string recorded_name(const testing::TestParamInfo<Recorded>& each);

// Each interpreter that has a trampoline, by both engines.
[[nodiscard]] std::vector<Recorded> recordings();

}  // namespace pyinject::test
