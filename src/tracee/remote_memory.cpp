#include "pyinject/tracee/remote_memory.hpp"

#include <sys/uio.h>

namespace pyinject::tracee {

bool ProcessMemory::read(base::RemoteAddress from, std::span<std::byte> into) const {
  const iovec local{.iov_base = into.data(), .iov_len = into.size()};
  // An address of another process, only ever handed to the kernel.
  const iovec remote{
      .iov_base = reinterpret_cast<void*>(from.value()),  // NOLINT(performance-no-int-to-ptr)
      .iov_len = into.size()};
  return ::process_vm_readv(pid_.value(), &local, 1, &remote, 1, 0) ==
         static_cast<ssize_t>(into.size());
}

bool ProcessMemory::write(base::RemoteAddress to, std::span<const std::byte> from) const {
  // writev does not write through iov_base; the structure has no const form.
  const iovec local{.iov_base = const_cast<std::byte*>(
                        from.data()),  // NOLINT(cppcoreguidelines-pro-type-const-cast)
                    .iov_len = from.size()};
  const iovec remote{
      .iov_base = reinterpret_cast<void*>(to.value()),  // NOLINT(performance-no-int-to-ptr)
      .iov_len = from.size()};
  return ::process_vm_writev(pid_.value(), &local, 1, &remote, 1, 0) ==
         static_cast<ssize_t>(from.size());
}

}  // namespace pyinject::tracee
