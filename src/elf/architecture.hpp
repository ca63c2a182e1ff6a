// The architecture that this program is built for, as ELF files and Debian name it.
#pragma once

#include <cstdint>
#include <string_view>

namespace pyinject::elf {

struct Architecture {
  std::uint16_t number;   // e_machine, elf.h
  std::string_view name;  // "x86-64"
  std::string_view
      directories;  // with libraries, besides those of all machines, in the loader's order
};
[[nodiscard]] const Architecture& own_architecture();

}  // namespace pyinject::elf
