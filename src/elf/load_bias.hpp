// From where a file's segment is mapped to the difference between its addresses and the target's.
#pragma once

#include "elf/elf_file.hpp"
#include "pyinject/base/remote_address.hpp"

#include <cstdint>
#include <optional>
#include <span>

namespace pyinject::elf {

// The mapping [BEGIN, ...) shows the file from FILE_OFFSET on and is EXECUTABLE or not. It may be
// any mapping of the file, or a part of one (mprotect splits them). Where two PT_LOADs share the
// page of the file, the one with the same executability is taken, then the one that starts there.
// nullopt: no PT_LOAD is mapped like that.
[[nodiscard]] std::optional<base::LoadBias> load_bias(std::span<const Segment> segments,
                                                      base::RemoteAddress begin,
                                                      std::uint64_t file_offset, bool executable);

}  // namespace pyinject::elf
