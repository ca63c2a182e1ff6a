// What a thread does in the kernel, by the functions on its kernel stack. Pure.
#pragma once

#include "sample/use.hpp"

#include <cstddef>
#include <span>
#include <string_view>

namespace pyinject::procfs {

struct KernelFinding {
  sample::Use use = sample::Use::kUnknown;  // kFault to kSignal
  std::size_t function = 0;                 // index of the function that tells, if USE is known
};

// FUNCTIONS: innermost first.
[[nodiscard]] KernelFinding kernel_work(std::span<const std::string_view> functions);

}  // namespace pyinject::procfs
