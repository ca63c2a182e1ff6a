#include "tracee/tracee_memory.hpp"

#include <sys/uio.h>

namespace pyinject::tracee {

bool TraceeMemory::write(base::RemoteAddress to, std::span<const std::byte> from) const {
  // The system call does not write through iov_base; the structure has no const form.
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast)
  const iovec local{.iov_base = const_cast<std::byte*>(from.data()), .iov_len = from.size()};
  // An address in another process: only passed to the kernel, never dereferenced.
  const iovec remote{
      .iov_base = reinterpret_cast<void*>(to.value()),  // NOLINT(performance-no-int-to-ptr)
      .iov_len = from.size()};
  return ::process_vm_writev(pid_.value(), &local, 1, &remote, 1, 0) ==
         static_cast<ssize_t>(from.size());
}

}  // namespace pyinject::tracee
