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

struct TableCall {
  base::RemoteAddress table;
  base::RemoteAddress returns_to;  // the instruction after the call
  bool operator==(const TableCall&) const = default;
};

// The first call of an element of a table of pointers whose address follows from CODE alone, as in
// "call *TABLE(,%rax,8)", or "lea TABLE(%rip), %rcx" and "call *(%rcx,%rax,8)".
[[nodiscard]] std::optional<TableCall> first_call_through_table(std::span<const std::byte> code,
                                                                base::RemoteAddress at);

// The offsets in CODE, ascending, where first_call_through_table() may find a call through TABLE:
// of such calls, and of instructions that load its address. Fast: does not disassemble.
[[nodiscard]] std::vector<std::size_t> uses_of_table(std::span<const std::byte> code,
                                                     base::RemoteAddress at,
                                                     base::RemoteAddress table);

// Targets of direct jumps (not calls) that lead out of CODE; ascending.
[[nodiscard]] std::vector<base::RemoteAddress> jumps_out_of(std::span<const std::byte> code,
                                                            base::RemoteAddress at);

}  // namespace pyinject::python
