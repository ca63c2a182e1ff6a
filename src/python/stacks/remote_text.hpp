// Reads a str object of a target.
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

inline constexpr std::size_t kMostTextBytes = std::size_t{64} << 10U;  // the rest is dropped

// In UTF-8; invalid characters (a lone surrogate) become U+FFFD. nullopt: no str at TEXT.
[[nodiscard]] std::optional<std::string> read_text(const memory::MemoryReader& memory,
                                                   const StackLayout& layout,
                                                   base::RemoteAddress text);

// Up to MOST characters. WHOLE: there are no more.
struct TextStart {
  std::string text;
  bool whole = true;
};
[[nodiscard]] std::optional<TextStart> read_text_start(const memory::MemoryReader& memory,
                                                       const StackLayout& layout,
                                                       base::RemoteAddress text, std::size_t most);

// UNITS: characters of WIDTH bytes (1: Latin-1, 2: UCS-2, 4: UCS-4). Returns at most
// kMostTextBytes, and only whole characters.
[[nodiscard]] std::string to_utf8(std::span<const std::byte> units, std::size_t width);

}  // namespace pyinject::python
