// When to give up: because another thread says so, because time is up, or because a wider piece of
// work is given up. Every loop over hostile input asks it.
#pragma once

#include "pyinject/base/deadline.hpp"

#include <atomic>
#include <optional>

namespace pyinject::base {

// A parent outlives its children. Of any thread.
class Cancellation {
 public:
  Cancellation() = default;
  // Stopped also when PARENT is.
  explicit Cancellation(const Cancellation& parent) : parent_{&parent} {}
  explicit Cancellation(Deadline deadline) : deadline_{deadline} {}
  // The first of the two.
  Cancellation(const Cancellation& parent, Deadline deadline)
      : parent_{&parent}, deadline_{deadline} {}
  Cancellation& operator=(const Cancellation&) = delete;
  ~Cancellation() = default;

  // For work that nothing ends before its time.
  [[nodiscard]] static const Cancellation& never() {
    static const Cancellation instance;
    return instance;
  }

  void cancel() noexcept { cancelled_.store(true, std::memory_order_relaxed); }

  // By cancel() of this one or of a parent; deadlines do not count.
  [[nodiscard]] bool cancelled() const noexcept {
    return cancelled_.load(std::memory_order_relaxed) ||
           (parent_ != nullptr && parent_->cancelled());
  }
  // Costs some 30 ns where there is a deadline.
  [[nodiscard]] bool stopped() const noexcept {
    return cancelled_.load(std::memory_order_relaxed) || (deadline_ && deadline_->expired()) ||
           (parent_ != nullptr && parent_->stopped());
  }

 private:
  const Cancellation* parent_ = nullptr;
  std::optional<Deadline> deadline_;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace pyinject::base
