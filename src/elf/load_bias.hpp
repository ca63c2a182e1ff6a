// Computes the difference between a file's addresses and the target's from a mapping of the file.
#pragma once

#include "elf/elf_file.hpp"
#include "pyinject/base/remote_address.hpp"

#include <cstdint>
#include <optional>
#include <span>

namespace pyinject::elf {

// The mapping starts at BEGIN, shows the file from FILE_OFFSET on and is EXECUTABLE or not. Any
// mapping of the file will do, even a part of one (mprotect splits mappings). If two PT_LOADs share
// the page of the file, prefers the one with the same executability, then the one that starts
// there. nullopt: no PT_LOAD matches the mapping.
[[nodiscard]] std::optional<base::LoadBias> load_bias(std::span<const Segment> segments,
                                                      base::RemoteAddress begin,
                                                      std::uint64_t file_offset, bool executable);

struct FileStart {
  base::RemoteAddress address;
  std::uint64_t offset = 0;  // in the file, bytes
};

// Where the loader has mapped the first PT_LOAD, if it has mapped the file with BIAS. A page of
// code that was mapped once more (libffi does that with its trampolines) seems to have another
// bias, but the start of the file is not there.
[[nodiscard]] FileStart start_of(std::span<const Segment> segments, base::LoadBias bias);

}  // namespace pyinject::elf
