// The memory that holds CPython's trampolines: a list of arenas, the newest first
// (struct code_arena_st of Python/perf_trampoline.c). Pinning them: activate/pinned_arenas.hpp.
#pragma once

#include "memory/process_memory.hpp"
#include "procfs/maps.hpp"
#include "pyinject/base/remote_address.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace pyinject::python {

// munmap(2) fails with EINVAL for this length, since the range's end overflows. CPython uses an
// arena's size for munmap() only, but builds with assertions check size_left <= size: 0 would abort
// those.
inline constexpr std::uint64_t kPinnedSize = ~std::uint64_t{0};

struct CodeArena {
  base::RemoteAddress size_field;
  bool pinned = false;  // CPython's munmap() of it fails, and its trampolines stay mapped
};

// The list whose first pointer is at HEAD. Every field and every mapping is checked against MAPS; a
// string says what does not fit.
[[nodiscard]] std::variant<std::vector<CodeArena>, std::string> read_code_arenas(
    const memory::MemoryReader& memory, base::RemoteAddress head,
    const std::vector<procfs::Mapping>& maps);

// Whether the newest arena is not pinned yet. Needs no stop; nullopt: cannot be read.
[[nodiscard]] std::optional<bool> has_new_arena(const memory::MemoryReader& memory,
                                                base::RemoteAddress head);

// For the user: what the failure PROBLEM of pin_code_arenas() or read_code_arenas() means.
[[nodiscard]] std::string unpinned_note(const std::string& problem);

}  // namespace pyinject::python
