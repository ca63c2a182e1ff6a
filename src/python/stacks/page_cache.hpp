// A target's memory by whole pages, so that what lies close together costs one system call.
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

// Bytes of a target, and where they were.
struct Snapshot {
  struct Range {
    base::RemoteAddress begin;
    std::size_t size = 0;
  };
  std::vector<Range> ranges;
  std::vector<std::byte> bytes;  // of all ranges, one behind the other
};

class PageCache : public memory::MemoryReader {
 public:
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kMostPages = 2048;  // further ones cannot be read

  explicit PageCache(const memory::MemoryReader& memory) : memory_{memory} {}

  // Forgets all and reads PAGES, those that are likely to be wanted, at once.
  void refresh(std::span<const base::RemoteAddress> pages);
  // From pages that are read the first time they are wanted.
  [[nodiscard]] bool read(base::RemoteAddress from, std::span<std::byte> into) const override;
  // The pages that something was read from since the last refresh.
  [[nodiscard]] std::vector<base::RemoteAddress> used() const;
  // What was read since then, and some of what lies between.
  [[nodiscard]] Snapshot snapshot() const;

 private:
  using Bytes = std::array<std::byte, kPage>;
  struct Page {
    base::RemoteAddress begin;
    std::size_t first = kPage;  // the part that was read from
    std::size_t behind = 0;
    Bytes* bytes = nullptr;
    [[nodiscard]] bool used() const { return first < behind; }
  };
  [[nodiscard]] Page* page(base::RemoteAddress begin) const;
  Page& add(base::RemoteAddress begin) const;

  const memory::MemoryReader& memory_;
  // As a cache it changes where nothing is seen of it.
  mutable std::vector<Page> pages_;
  mutable std::unordered_map<std::uint64_t, std::size_t> places_;  // in pages_
  mutable std::size_t latest_ = 0;  // the page that was read from last, in pages_
  // For as many pages as there have ever been at once.
  mutable std::vector<std::unique_ptr<Bytes>> buffers_;
};

}  // namespace pyinject::python
