// What the C library keeps for each thread, at the thread pointer.
#pragma once

#include "memory/process_memory.hpp"
#include "pyinject/base/remote_address.hpp"

#include <cstdint>
#include <optional>

namespace pyinject::python {

// gettid() of the thread whose thread pointer is POINTER, in its own pid namespace: the C library
// stores it when it starts the thread, and in fork(). nullopt: unreadable, or not glibc's.
[[nodiscard]] std::optional<std::uint64_t> tid_in_thread_block(const memory::MemoryReader& memory,
                                                               base::RemoteAddress pointer);

}  // namespace pyinject::python
