// What everybody takes who reads a target's frames: the interpreter's file, and the layout.
#pragma once

#include "elf/elf_file.hpp"
#include "pyinject/python/target.hpp"
#include "python/layout/runtime_layout.hpp"

#include <string>
#include <variant>

namespace pyinject::python {

struct FrameReading {
  elf::ElfFile file;
  RuntimeLayout layout;  // of whose stack all offsets are plausible
};

// A string says why not.
[[nodiscard]] std::variant<FrameReading, std::string> prepare_frame_reading(const Target& target);

}  // namespace pyinject::python
