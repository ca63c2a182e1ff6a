#include "python/examine/mailbox.hpp"

#include <algorithm>

namespace pyinject::python {

std::optional<base::RemoteAddress> mailbox_place(const UnusedMemory& unused) {
  constexpr std::uint64_t kAlign = 16;
  const std::uint64_t begin = (unused.begin.value() + kAlign - 1) & ~(kAlign - 1);
  const std::uint64_t end = unused.begin.value() + unused.size;
  if (begin + sizeof(Mailbox) > end) {
    return std::nullopt;
  }
  return base::RemoteAddress{begin};
}

std::optional<Mailbox> read_mailbox(const memory::MemoryReader& memory,
                                    base::RemoteAddress address) {
  const auto mailbox = memory.read_value<Mailbox>(address);
  return mailbox && mailbox->magic == kMailboxMagic ? mailbox : std::nullopt;
}

bool is_unused(const memory::MemoryReader& memory, base::RemoteAddress address) {
  std::array<std::byte, sizeof(Mailbox)> bytes{};
  return memory.read(address, bytes) &&
         std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace pyinject::python
