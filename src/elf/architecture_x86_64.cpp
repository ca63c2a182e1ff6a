#include "elf/architecture.hpp"

#include <elf.h>

namespace pyinject::elf {

const Architecture& own_architecture() {
  static constexpr Architecture kOwn{
      .number = EM_X86_64,
      .name = "x86-64",
      .directories = "/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu"};
  return kOwn;
}

}  // namespace pyinject::elf
