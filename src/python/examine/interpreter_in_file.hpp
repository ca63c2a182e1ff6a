// Which CPython an executable will be, by what is in its file: for commands that do not run yet.
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

// Nothing is run. nullopt: the file is no CPython of this machine, or its libpython was not found
// (looked for where the executable itself, LD_LIBRARY_PATH and the usual folders say).
[[nodiscard]] std::optional<InterpreterInFile> find_interpreter_in_file(
    const std::string& executable);

}  // namespace pyinject::python
