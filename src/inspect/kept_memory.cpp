#include "inspect/kept_memory.hpp"

#include <algorithm>

namespace pyinject::inspect {

bool KeptMemory::read(base::RemoteAddress from, std::span<std::byte> into) const {
  const std::pair key{from.value(), into.size()};
  auto found = kept_.find(key);
  if (found == kept_.end() && !closed_) {
    const bool readable = memory_.read(from, into);
    found =
        kept_.emplace(key, readable ? Bytes{std::vector(into.begin(), into.end())} : Bytes{}).first;
  }
  if (found == kept_.end() || !found->second) {
    return false;
  }
  std::ranges::copy(*found->second, into.begin());
  return true;
}

}  // namespace pyinject::inspect
