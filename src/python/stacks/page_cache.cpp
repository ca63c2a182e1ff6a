#include "python/stacks/page_cache.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>

namespace pyinject::python {

void PageCache::refresh(std::span<const base::RemoteAddress> pages) {
  pages_.clear();
  places_.clear();
  latest_ = 0;
  std::vector<memory::ReadPiece> pieces;
  pieces.reserve(pages.size());
  for (const auto begin : pages.first(std::min(pages.size(), kMostPages))) {
    pieces.push_back({.from = begin, .into = *add(begin).bytes});
  }
  memory_.read_each(pieces);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (!pieces[i].done) {
      pages_[i].begin = base::RemoteAddress{1};  // never the start of a page
      places_.erase(pieces[i].from.value());
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
    const std::size_t size = std::min(into.size(), kPage - offset);
    found->first = std::min(found->first, offset);
    found->behind = std::max(found->behind, offset + size);
    std::memcpy(into.data(), found->bytes->data() + offset, size);
    into = into.subspan(size);
    from = from + size;
  }
  return true;
}

PageCache::Page* PageCache::page(base::RemoteAddress begin) const {
  if (latest_ < pages_.size() && pages_[latest_].begin == begin) {
    return &pages_[latest_];
  }
  if (const auto known = places_.find(begin.value()); known != places_.end()) {
    latest_ = known->second;
    return &pages_[latest_];
  }
  if (pages_.size() == kMostPages) {
    return nullptr;
  }
  auto& added = add(begin);
  if (!memory_.read(begin, *added.bytes)) {
    places_.erase(begin.value());
    pages_.pop_back();
    return nullptr;
  }
  latest_ = pages_.size() - 1;
  return &added;
}

PageCache::Page& PageCache::add(base::RemoteAddress begin) const {
  if (buffers_.size() == pages_.size()) {
    buffers_.push_back(std::make_unique<Bytes>());
  }
  auto* const bytes = buffers_[pages_.size()].get();
  places_.emplace(begin.value(), pages_.size());
  return pages_.emplace_back(Page{.begin = begin, .bytes = bytes});
}

std::vector<base::RemoteAddress> PageCache::used() const {
  std::vector<base::RemoteAddress> used;
  for (const auto& page : pages_) {
    if (page.used()) {
      used.push_back(page.begin);
    }
  }
  return used;
}

Snapshot PageCache::snapshot() const {
  std::vector<Page> pages;
  std::ranges::copy_if(pages_, std::back_inserter(pages), &Page::used);
  std::ranges::sort(pages, {}, &Page::begin);
  Snapshot snapshot;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    // If the next page's part continues on this page, everything in between belongs to one range.
    const auto& page = pages[i];
    const bool joins = i > 0 && pages[i - 1].begin + kPage == page.begin;
    const bool joined = i + 1 < pages.size() && page.begin + kPage == pages[i + 1].begin;
    const std::size_t first = joins ? 0 : page.first;
    const std::size_t size = (joined ? kPage : page.behind) - first;
    if (joins) {
      snapshot.ranges.back().size += size;
    } else {
      snapshot.ranges.push_back({.begin = page.begin + first, .size = size});
    }
    const auto part = std::span{*page.bytes}.subspan(first, size);
    snapshot.bytes.insert(snapshot.bytes.end(), part.begin(), part.end());
  }
  return snapshot;
}

}  // namespace pyinject::python
