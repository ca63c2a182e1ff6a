// Reads facts from the interpreter's machine code: offsets used by its exported accessors, to
// cross-check the layout table, and jump targets. Pure: bytes in, numbers out.
#pragma once

#include "pyinject/base/remote_address.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace pyinject::python {

// Displacement of the first load through the first argument, as in
// _PyInterpreterState_GetEvalFrameFunc(interp): "mov DISP(%rdi), %rax".
[[nodiscard]] std::optional<std::uint64_t> first_field_loaded(std::span<const std::byte> code,
                                                              base::RemoteAddress at);

// Displacement of the first comparison with an element of an array of pointers, as in
// PyCode_ClearWatcher(id): "cmpq $0, DISP(%rax,%rcx,8)".
[[nodiscard]] std::optional<std::uint64_t> first_element_compared(std::span<const std::byte> code,
                                                                  base::RemoteAddress at);

// Whether CODE computes the address BASE + OFFSET: as a constant, relative to the instruction
// pointer, or as a sum of such values and of words that it loads from the GOT, in any order: GCC
// adds to BASE, clang adds BASE to OFFSET. SLOT reads 8 bytes of the target.
[[nodiscard]] bool takes_address(
    std::span<const std::byte> code, base::RemoteAddress at, base::RemoteAddress base,
    std::uint64_t offset,
    const std::function<std::optional<std::uint64_t>(base::RemoteAddress)>& slot);

// Targets of direct jumps (not calls) that lead out of CODE; ascending.
[[nodiscard]] std::vector<base::RemoteAddress> jumps_out_of(std::span<const std::byte> code,
                                                            base::RemoteAddress at);

}  // namespace pyinject::python
