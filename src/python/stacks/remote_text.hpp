// A str object of a target.
#pragma once

#include "memory/process_memory.hpp"
#include "pyinject/base/remote_address.hpp"
#include "python/layout/stack_layout.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace pyinject::python {

inline constexpr std::size_t kMostTextBytes = std::size_t{64} << 10U;  // the rest is left out

// In UTF-8; what is no character (a lone surrogate) becomes U+FFFD. nullopt: there is no str.
[[nodiscard]] std::optional<std::string> read_text(const memory::MemoryReader& memory,
                                                   const StackLayout& layout,
                                                   base::RemoteAddress text);

// UNITS: characters of WIDTH bytes (1: Latin-1, 2: UCS-2, 4: UCS-4). At most kMostTextBytes are
// returned, and whole characters.
[[nodiscard]] std::string to_utf8(std::span<const std::byte> units, std::size_t width);

}  // namespace pyinject::python
