#include "python/page_cache.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace pyinject::python {

void PageCache::refresh(std::span<const base::RemoteAddress> pages) {
  const std::size_t count = std::min(pages.size(), kMostPages);
  pages_.resize(count);
  places_.clear();
  std::vector<tracee::ReadPiece> pieces;
  pieces.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    pages_[i].begin = pages[i];
    pages_[i].used = false;
    pieces.push_back({.from = pages[i], .into = pages_[i].bytes});
  }
  memory_.read_each(pieces);
  for (std::size_t i = 0; i < count; ++i) {
    if (pieces[i].done) {
      places_.emplace(pages[i].value(), i);
    }
  }
}

bool PageCache::read(base::RemoteAddress from, std::span<std::byte> into) const {
  if (into.size() > std::numeric_limits<std::uint64_t>::max() - from.value()) {
    return false;
  }
  while (!into.empty()) {
    const std::size_t offset = from.value() % kPage;
    auto* const found = page(from - offset);
    if (found == nullptr) {
      return false;
    }
    found->used = true;
    const std::size_t size = std::min(into.size(), kPage - offset);
    std::memcpy(into.data(), found->bytes.data() + offset, size);
    into = into.subspan(size);
    from = from + size;
  }
  return true;
}

PageCache::Page* PageCache::page(base::RemoteAddress begin) const {
  if (const auto known = places_.find(begin.value()); known != places_.end()) {
    return &pages_[known->second];
  }
  if (pages_.size() == kMostPages) {
    return nullptr;
  }
  auto& added = pages_.emplace_back();
  added.begin = begin;
  if (!memory_.read(begin, added.bytes)) {
    pages_.pop_back();
    return nullptr;
  }
  places_.emplace(begin.value(), pages_.size() - 1);
  return &added;
}

std::vector<base::RemoteAddress> PageCache::used() const {
  std::vector<base::RemoteAddress> used;
  for (const auto& page : pages_) {
    if (page.used) {
      used.push_back(page.begin);
    }
  }
  return used;
}

}  // namespace pyinject::python
