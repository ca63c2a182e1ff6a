// The vDSO: a library that the kernel maps into each process.
#pragma once

#include "pyinject/base/unique_fd.hpp"

namespace pyinject::elf {

// It has no file; this process has the same one as every process on this kernel. Not valid: none.
[[nodiscard]] base::UniqueFd copy_of_vdso();

}  // namespace pyinject::elf
