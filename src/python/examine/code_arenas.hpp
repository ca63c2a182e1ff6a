// The memory of CPython's trampolines: a list of arenas, newest first (struct code_arena_st of
// Python/perf_trampoline.c). Pinning: activate/pinned_arenas.hpp.
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

// munmap(2) fails with EINVAL for this length, since the end of the range overflows. CPython uses
// an arena's size only for munmap(), but builds with assertions check size_left <= size, which 0
// would violate.
inline constexpr std::uint64_t kPinnedSize = ~std::uint64_t{0};

struct CodeArena {
  base::RemoteAddress size_field;
  bool pinned = false;  // CPython's munmap() fails: the trampolines stay mapped
};

// The list with its first pointer at HEAD. Checks every field and every mapping against MAPS; a
// string says what does not fit.
[[nodiscard]] std::variant<std::vector<CodeArena>, std::string> read_code_arenas(
    const memory::MemoryReader& memory, base::RemoteAddress head,
    const std::vector<procfs::Mapping>& maps);

// Whether the newest arena is unpinned. Needs no stop; nullopt: unreadable.
[[nodiscard]] std::optional<bool> has_new_arena(const memory::MemoryReader& memory,
                                                base::RemoteAddress head);

// Explains PROBLEM, a failure of pin_code_arenas() or read_code_arenas(), to the user.
[[nodiscard]] std::string unpinned_note(const std::string& problem);

}  // namespace pyinject::python
