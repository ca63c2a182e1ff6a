// Reopens the file that holds a target's interpreter.
#pragma once

#include "elf/elf_file.hpp"
#include "pyinject/python/target.hpp"
#include "python/layout/process_image.hpp"

#include <string>
#include <variant>

namespace pyinject::python {

// A string says why not.
[[nodiscard]] std::variant<elf::ElfFile, std::string> open_interpreter(const Target& target);
// The same with TARGET as IMAGE shows it.
[[nodiscard]] std::variant<elf::ElfFile, std::string> open_interpreter(const Target& target,
                                                                       const ProcessImage& image);

}  // namespace pyinject::python
