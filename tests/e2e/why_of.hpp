// What `why --json` says of a program.
#pragma once

#include "support/child_process.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/python_process.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace pyinject::test {

// For two seconds of PROGRAM with ARGUMENT.
[[nodiscard]] inline nlohmann::json why_of(const Interpreter& python, const char* program,
                                           const std::string& argument) {
  const PythonProcess target{
      python, program, {.interpreter_args = {}, .args = {argument}, .child = {}}};
  const auto shown =
      run({tool(), "why", "-d", "2", "--json", "-p", std::to_string(target.pid().value())});
  EXPECT_EQ(shown.status, ExitStatus{}) << shown.err;
  return nlohmann::json::parse(shown.out);
}

}  // namespace pyinject::test
