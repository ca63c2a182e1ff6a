#include "pyinject/tracee/remote_memory.hpp"

#include <sys/uio.h>

namespace pyinject::tracee {

namespace {

iovec remote_vector(base::RemoteAddress address, std::size_t size) {
  // An address of another process: never dereferenced here, only handed to the kernel.
  return {
      .iov_base = reinterpret_cast<void*>(address.value()),  // NOLINT(performance-no-int-to-ptr)
      .iov_len = size};
}

}  // namespace

bool ProcessMemory::read(base::RemoteAddress from, std::span<std::byte> into) const {
  const iovec local{.iov_base = into.data(), .iov_len = into.size()};
  const iovec remote = remote_vector(from, into.size());
  return ::process_vm_readv(pid_.value(), &local, 1, &remote, 1, 0) ==
         static_cast<ssize_t>(into.size());
}

bool ProcessMemory::write(base::RemoteAddress to, std::span<const std::byte> from) const {
  // The system call does not write through iov_base; the structure has no const form.
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast)
  const iovec local{.iov_base = const_cast<std::byte*>(from.data()), .iov_len = from.size()};
  const iovec remote = remote_vector(to, from.size());
  return ::process_vm_writev(pid_.value(), &local, 1, &remote, 1, 0) ==
         static_cast<ssize_t>(from.size());
}

}  // namespace pyinject::tracee
