#include "memory/steady_memory.hpp"

#include <algorithm>

namespace pyinject::memory {

void SteadyMemory::set_steady(bool steady) {
  steady_ = steady;
  pages_.clear();
}

const SteadyMemory::Page* SteadyMemory::page(std::uint64_t begin) const {
  if (const auto found = pages_.find(begin); found != pages_.end()) {
    return found->second.get();
  }
  if (pages_.size() >= kMostPages) {
    return nullptr;
  }
  auto bytes = std::make_unique<Page>();
  if (!memory_->read(base::RemoteAddress{begin}, *bytes)) {
    bytes.reset();
  }
  return pages_.emplace(begin, std::move(bytes)).first->second.get();
}

bool SteadyMemory::read(base::RemoteAddress from, std::span<std::byte> into) const {
  if (!steady_ || into.size() > kPage) {
    return memory_->read(from, into);
  }
  for (std::size_t done = 0; done < into.size();) {
    const auto at = from.value() + done;
    const auto offset = static_cast<std::size_t>(at % kPage);
    const auto size = std::min(into.size() - done, kPage - offset);
    const auto* const bytes = page(at - offset);
    if (bytes == nullptr) {
      return memory_->read(from, into);
    }
    std::copy_n(bytes->begin() + static_cast<std::ptrdiff_t>(offset), size,
                into.begin() + static_cast<std::ptrdiff_t>(done));
    done += size;
  }
  return true;
}

void SteadyMemory::read_each(std::span<ReadPiece> pieces) const {
  if (steady_) {
    MemoryReader::read_each(pieces);
  } else {
    memory_->read_each(pieces);
  }
}

}  // namespace pyinject::memory
