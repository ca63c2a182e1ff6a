// Caches a target's memory by pages, so that reads of neighboring data cost one system call.
#pragma once

#include "memory/process_memory.hpp"
#include "pyinject/base/remote_address.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace pyinject::python {

// Bytes of a target and their addresses.
struct Snapshot {
  struct Range {
    base::RemoteAddress begin;
    std::size_t size = 0;
  };
  std::vector<Range> ranges;
  std::vector<std::byte> bytes;  // of all ranges, concatenated
};

class PageCache : public memory::MemoryReader {
 public:
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kMostPages = 2048;  // reads of further pages fail

  explicit PageCache(const memory::MemoryReader& memory) : memory_{memory} {}

  // Drops everything and reads PAGES, which are likely to be needed, at once.
  void refresh(std::span<const base::RemoteAddress> pages);
  // Reads each page from the target on first use.
  [[nodiscard]] bool read(base::RemoteAddress from, std::span<std::byte> into) const override;
  // Number of pages that it holds.
  [[nodiscard]] std::size_t size() const { return pages_.size(); }
  // The pages that have been read from since the last refresh.
  [[nodiscard]] std::vector<base::RemoteAddress> used() const;
  // The bytes read since then, and some in between.
  [[nodiscard]] Snapshot snapshot() const;

 private:
  using Bytes = std::array<std::byte, kPage>;
  struct Page {
    base::RemoteAddress begin;
    std::size_t first = kPage;  // the part that was read
    std::size_t behind = 0;
    Bytes* bytes = nullptr;
    [[nodiscard]] bool used() const { return first < behind; }
  };
  [[nodiscard]] Page* page(base::RemoteAddress begin) const;
  Page& add(base::RemoteAddress begin) const;

  const memory::MemoryReader& memory_;
  // Mutable: caching is not observable.
  mutable std::vector<Page> pages_;
  mutable std::unordered_map<std::uint64_t, std::size_t> places_;  // in pages_
  mutable std::size_t latest_ = 0;  // index in pages_ of the page that was read last
  // As many as the largest number of pages so far.
  mutable std::vector<std::unique_ptr<Bytes>> buffers_;
};

}  // namespace pyinject::python
