// Which Python a command that does not run yet will be.
#pragma once

#include "python/examine/interpreter_in_file.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pyinject::session {

struct CommandInterpreter {
  std::string name;  // of the executable, without its folder
  python::InterpreterInFile file;
  std::string isolated;  // the option (-I, -E) by which it ignores the environment; else empty
};

// By COMMAND's file: an interpreter itself (also in a virtual environment), a script whose first
// line names one, or env(1) before one of them. nullopt: something else, which may start a Python
// all the same. PATH: where execvp would search. Nothing is run.
[[nodiscard]] std::optional<CommandInterpreter> find_command_interpreter(
    const std::vector<std::string>& command, const std::string& path);

}  // namespace pyinject::session
