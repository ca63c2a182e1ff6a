#include "recorder/ring.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

namespace pyinject::recorder {

std::optional<Ring> Ring::map(base::UniqueFd fd, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const memory =
      ::mmap(nullptr, page + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) {
    return std::nullopt;
  }
  return Ring{std::move(fd), memory, bytes, page};
}

Ring::Ring(Ring&& other) noexcept
    : fd_{std::move(other.fd_)},
      memory_{std::exchange(other.memory_, nullptr)},
      bytes_{other.bytes_},
      page_{other.page_},
      head_{other.head_} {}

Ring::~Ring() {
  if (memory_ != nullptr) {
    ::munmap(memory_, page_ + bytes_);
  }
}

Ring::Pieces Ring::records() {
  auto& control = this->control();
  head_ = std::atomic_ref{control.data_head}.load(std::memory_order_acquire);
  const std::uint64_t tail = control.data_tail;
  const auto size = static_cast<std::size_t>(head_ - tail);
  if (size == 0 || size > bytes_) {
    return {};
  }
  const std::span data{static_cast<const std::byte*>(memory_) + page_, bytes_};
  const auto begin = static_cast<std::size_t>(tail & (bytes_ - 1));
  const auto first = std::min(size, bytes_ - begin);
  return {data.subspan(begin, first), data.first(size - first)};
}

void Ring::release() {
  std::atomic_ref{control().data_tail}.store(head_, std::memory_order_release);
}

}  // namespace pyinject::recorder
