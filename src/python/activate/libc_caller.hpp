// Finds the function that called into the C library. The C library waits in system calls for
// CPython, which repeats them after EINTR (PEP 475), and for others, which may not.
#pragma once

#include "elf/call_frame_info.hpp"
#include "memory/process_memory.hpp"
#include "procfs/maps.hpp"
#include "pyinject/base/pid.hpp"
#include "tracee/registers.hpp"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace pyinject::python {

class LibcCaller {
 public:
  // INSIDE: any address in the C library's code. Reads its file: do not call it during a stop.
  // nullptr: no unwind information.
  [[nodiscard]] static std::unique_ptr<LibcCaller> open(base::Pid pid,
                                                        const std::vector<procfs::Mapping>& maps,
                                                        base::RemoteAddress inside);

  // The return address into the first function outside of the C library; nullopt: cannot be
  // determined.
  [[nodiscard]] std::optional<base::RemoteAddress> find(const memory::MemoryReader& memory,
                                                        const tracee::Registers& registers) const;

 private:
  LibcCaller(elf::CallFrameInfo info, base::LoadBias bias, procfs::Mapping code)
      : info_{std::move(info)}, bias_{bias}, code_{std::move(code)} {}

  elf::CallFrameInfo info_;
  base::LoadBias bias_;
  procfs::Mapping code_;
};

}  // namespace pyinject::python
