// Predicts which CPython an executable will be from its file, for commands that do not run yet.
#pragma once

#include "pyinject/python/reason.hpp"
#include "pyinject/python/target.hpp"

#include <optional>
#include <string>

namespace pyinject::python {

struct InterpreterInFile {
  std::string path;  // the executable, or the libpython that it needs
  Version version;   // 0.0.0: older than 3.11
  bool frame_pointers = false;
  std::optional<Refusal> refusal;  // why its trampoline should not be switched on
};

// Runs nothing. nullopt: the file is no CPython for this machine, or its libpython was not found
// (searched in the places given by the executable, in LD_LIBRARY_PATH and in the usual
// directories).
[[nodiscard]] std::optional<InterpreterInFile> find_interpreter_in_file(
    const std::string& executable);

}  // namespace pyinject::python
