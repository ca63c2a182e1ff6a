// Positional reads and writes. Both throw SystemError with the file's name.
#pragma once

#include "perfdata/event.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace pyinject::perfdata {

// A part of the file.
struct Section {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;

  [[nodiscard]] std::uint64_t end() const { return offset + size; }
  [[nodiscard]] bool lies_in(std::uint64_t file_size) const {
    return offset <= file_size && size <= file_size - offset;
  }
};

// Fills INTO; reads less only at the end of the file.
[[nodiscard]] std::size_t read_at(int fd, std::uint64_t offset, std::span<std::byte> into,
                                  const std::string& name);

void write_at(int fd, std::uint64_t offset, Bytes bytes, const std::string& name);

}  // namespace pyinject::perfdata
