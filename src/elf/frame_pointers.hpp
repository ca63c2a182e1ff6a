// Detects whether a file was built with frame pointers.
#pragma once

#include "elf/elf_file.hpp"

#include <optional>

namespace pyinject::elf {

// The share (0 to 1) of the larger functions (256 bytes and more) with a frame based on %rbp at
// their middle, according to the file's .eh_frame, which even stripped files have. Builds with
// -fno-omit-frame-pointer: over 0.95; without: under 0.15, because functions with alloca or an
// aligned stack use %rbp in any build. Large files are sampled evenly: takes some milliseconds.
// nullopt: no unwind information.
[[nodiscard]] std::optional<double> frame_pointer_share(const ElfFile& file);

// Whether at least half of them have one.
[[nodiscard]] inline bool keeps_frame_pointers(const ElfFile& file) {
  return frame_pointer_share(file).value_or(0) >= 0.5;
}

}  // namespace pyinject::elf
