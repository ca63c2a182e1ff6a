// What a thread does in the kernel, by the functions on its kernel stack. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace pyinject::procfs {

enum class KernelWork : std::uint8_t {
  kUnknown,  // no stack, or no function that tells
  kFault,    // handles a page fault
  kSwap,     // a page fault that reads from swap
  kFutex,
  kSleep,
  kAccept,  // waits for a connection
  kNetwork,
  kPoll,  // waits for one of several files
  kPipe,
  kChild,  // waits for a process
  kDisk,   // a file
  kSignal,
};

struct KernelFinding {
  KernelWork work = KernelWork::kUnknown;
  std::size_t function = 0;  // index of the function that tells, if WORK is known
};

// FUNCTIONS: innermost first.
[[nodiscard]] KernelFinding kernel_work(std::span<const std::string_view> functions);

}  // namespace pyinject::procfs
