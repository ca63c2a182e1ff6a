// The ring in which the kernel writes the records of a processor: perf_event_open(2), "MMAP
// layout".
#pragma once

#include "pyinject/base/unique_fd.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include <linux/perf_event.h>

namespace pyinject::recorder {

class Ring {
 public:
  // FD: an event of this process on the processor, which never exits before the ring's owner. BYTES
  // of data: a power of two, and of a page. nullopt: errno says why.
  [[nodiscard]] static std::optional<Ring> map(base::UniqueFd fd, std::size_t bytes);
  Ring(Ring&& other) noexcept;
  Ring& operator=(Ring&&) = delete;
  ~Ring();

  // Becomes readable when the ring is half full.
  [[nodiscard]] int fd() const { return fd_.get(); }

  // Bytes of data.
  [[nodiscard]] std::size_t size() const { return bytes_; }

  // The records since the last call, which may be in two pieces; empty: none. They stay in the ring
  // until release().
  using Pieces = std::array<std::span<const std::byte>, 2>;
  [[nodiscard]] Pieces records();
  void release();

 private:
  Ring(base::UniqueFd fd, void* memory, std::size_t bytes, std::size_t page)
      : fd_{std::move(fd)}, memory_{memory}, bytes_{bytes}, page_{page} {}
  [[nodiscard]] perf_event_mmap_page& control() const {
    return *static_cast<perf_event_mmap_page*>(memory_);
  }

  base::UniqueFd fd_;
  void* memory_;  // the control page, then the data
  std::size_t bytes_;
  std::size_t page_;
  std::uint64_t head_ = 0;
};

}  // namespace pyinject::recorder
