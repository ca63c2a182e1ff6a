// What every reader of a target's frames needs: the interpreter's file and the layout.
#pragma once

#include "elf/elf_file.hpp"
#include "pyinject/python/target.hpp"
#include "python/layout/process_image.hpp"
#include "python/layout/runtime_layout.hpp"

#include <string>
#include <variant>

namespace pyinject::python {

struct FrameReading {
  elf::ElfFile file;
  RuntimeLayout layout;  // all offsets of its stack are plausible
};

// A string says why not.
[[nodiscard]] std::variant<FrameReading, std::string> prepare_frame_reading(const Target& target);
// The same with TARGET as IMAGE shows it.
[[nodiscard]] std::variant<FrameReading, std::string> prepare_frame_reading(
    const Target& target, const ProcessImage& image);

}  // namespace pyinject::python
