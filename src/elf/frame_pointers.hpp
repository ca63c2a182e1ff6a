// Was this file built with frame pointers?
#pragma once

#include "elf/elf_file.hpp"

#include <optional>

namespace pyinject::elf {

// The share (0 to 1) of the larger functions (256 bytes and more) that find their frame by %rbp
// half way through, from the file's own .eh_frame, which stripped files have, too. Builds with
// -fno-omit-frame-pointer: over 0.95; without: under 0.15, as single functions with alloca or an
// aligned stack use %rbp on any build. Large files are sampled evenly: some milliseconds.
// nullopt: there is no unwind information to judge by.
[[nodiscard]] std::optional<double> frame_pointer_share(const ElfFile& file);

// At least half of them.
[[nodiscard]] inline bool keeps_frame_pointers(const ElfFile& file) {
  return frame_pointer_share(file).value_or(0) >= 0.5;
}

}  // namespace pyinject::elf
