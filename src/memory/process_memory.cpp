#include "memory/process_memory.hpp"

#include <algorithm>

#include <sys/uio.h>

namespace pyinject::memory {

namespace {

iovec remote_vector(base::RemoteAddress address, std::size_t size) {
  // An address in another process: only passed to the kernel, never dereferenced.
  return {
      .iov_base = reinterpret_cast<void*>(address.value()),  // NOLINT(performance-no-int-to-ptr)
      .iov_len = size};
}

}  // namespace

void MemoryReader::read_each(std::span<ReadPiece> pieces) const {
  for (auto& piece : pieces) {
    piece.done = read(piece.from, piece.into);
  }
}

bool ProcessMemory::read(base::RemoteAddress from, std::span<std::byte> into) const {
  const iovec local{.iov_base = into.data(), .iov_len = into.size()};
  const iovec remote = remote_vector(from, into.size());
  return ::process_vm_readv(pid_.value(), &local, 1, &remote, 1, 0) ==
         static_cast<ssize_t>(into.size());
}

void ProcessMemory::read_each(std::span<ReadPiece> pieces) const {
  constexpr std::size_t kBatch = 128;  // at most IOV_MAX
  std::array<iovec, kBatch> local{};
  std::array<iovec, kBatch> remote{};
  while (!pieces.empty()) {
    const std::size_t count = std::min(pieces.size(), kBatch);
    for (std::size_t i = 0; i < count; ++i) {
      const auto& piece = pieces[i];
      local.at(i) = {.iov_base = piece.into.data(), .iov_len = piece.into.size()};
      remote.at(i) = remote_vector(piece.from, piece.into.size());
    }
    // It stops at the first unreadable piece.
    const auto got = ::process_vm_readv(pid_.value(), local.data(), count, remote.data(), count, 0);
    auto left = static_cast<std::size_t>(std::max<ssize_t>(got, 0));
    std::size_t complete = 0;
    while (complete < count && pieces[complete].into.size() <= left) {
      left -= pieces[complete].into.size();
      pieces[complete].done = true;
      ++complete;
    }
    if (complete < count) {
      pieces[complete].done = false;
      ++complete;
    }
    pieces = pieces.subspan(complete);
  }
}

}  // namespace pyinject::memory
