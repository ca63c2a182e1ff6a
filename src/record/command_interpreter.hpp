// Predicts which Python a command will run.
#pragma once

#include "python/examine/interpreter_in_file.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pyinject::record {

struct CommandInterpreter {
  std::string name;  // of the executable, without its directory
  python::InterpreterInFile file;
  std::string isolated;  // the option (-I, -E) that makes it ignore the environment; else empty
};

// Decides by COMMAND's file: an interpreter (also in a virtual environment), a script whose first
// line names one, or env(1) in front of either. nullopt: anything else, which may still start a
// Python. PATH: where execvp would search. Runs nothing.
[[nodiscard]] std::optional<CommandInterpreter> find_command_interpreter(
    const std::vector<std::string>& command, const std::string& path);

}  // namespace pyinject::record
