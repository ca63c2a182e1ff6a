// The file that holds a target's interpreter, opened once more.
#pragma once

#include "elf/elf_file.hpp"
#include "pyinject/python/target.hpp"

#include <string>
#include <variant>

namespace pyinject::python {

// A string says why not.
[[nodiscard]] std::variant<elf::ElfFile, std::string> open_interpreter(const Target& target);

}  // namespace pyinject::python
