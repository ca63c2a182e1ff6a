// Writes into another process's memory, in addition to reading it.
#pragma once

#include "memory/process_memory.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/remote_address.hpp"

#include <cstddef>
#include <span>
#include <type_traits>

namespace pyinject::tracee {

// process_vm_writev(2), with the permissions of ProcessMemory.
class TraceeMemory : public memory::ProcessMemory {
 public:
  explicit TraceeMemory(base::Pid pid) : ProcessMemory{pid}, pid_{pid} {}

  // One contiguous write. The kernel copies page by page: atomic for the target only if every
  // thread is stopped. False: nothing or only a part was written; errno says why.
  [[nodiscard]] bool write(base::RemoteAddress to, std::span<const std::byte> from) const;

  template <typename Value>
  requires std::is_trivially_copyable_v<Value>
  [[nodiscard]] bool write_value(base::RemoteAddress to, const Value& value) const {
    return write(to, std::as_bytes(std::span{&value, 1}));
  }

 private:
  base::Pid pid_;
};

}  // namespace pyinject::tracee
