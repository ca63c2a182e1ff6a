// What the interpreter's machine code says: which offsets its own exported accessors use, to
// cross-check the layout table, and where a function goes on. Pure: bytes in, numbers out.
#pragma once

#include "pyinject/base/remote_address.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace pyinject::python {

// The displacement of the first load through the first argument, as in
// _PyInterpreterState_GetEvalFrameFunc(interp): "mov DISP(%rdi), %rax".
[[nodiscard]] std::optional<std::uint64_t> first_field_loaded(std::span<const std::byte> code,
                                                              base::RemoteAddress at);

// The displacement of the first comparison with an element of an array of pointers, as in
// PyCode_ClearWatcher(id): "cmpq $0, DISP(%rax,%rcx,8)".
[[nodiscard]] std::optional<std::uint64_t> first_element_compared(std::span<const std::byte> code,
                                                                  base::RemoteAddress at);

// True when CODE takes the address BASE + OFFSET: as a constant, relative to the instruction
// pointer, or by an addition to BASE that it loads from a GOT slot, or takes in one of those ways.
// SLOT reads 8 bytes of the target.
[[nodiscard]] bool takes_address(
    std::span<const std::byte> code, base::RemoteAddress at, base::RemoteAddress base,
    std::uint64_t offset,
    const std::function<std::optional<std::uint64_t>(base::RemoteAddress)>& slot);

// Where direct jumps (no calls) of CODE lead to outside of it; ascending.
[[nodiscard]] std::vector<base::RemoteAddress> jumps_out_of(std::span<const std::byte> code,
                                                            base::RemoteAddress at);

}  // namespace pyinject::python
