// A request to give up, made by another thread, by a deadline, by a limit on CPU time or by an
// enclosing piece of work.
// Every loop over hostile input checks it.
//
// For example:
//   base::Cancellation stop;  // another thread calls stop.cancel()
//   const base::Cancellation one_second{stop, base::Deadline::after(std::chrono::seconds{1})};
//   const auto found = detector.detect(pid, one_second);
#pragma once

#include "pyinject/base/deadline.hpp"

#include <atomic>
#include <chrono>
#include <ctime>
#include <optional>

namespace pyinject::base {

// The CPU time that the calling thread may use from now on. A disk or a busy machine that keeps the
// thread waiting does not use it up.
class CpuLimit {
 public:
  explicit CpuLimit(std::chrono::nanoseconds span) : end_{used() + span} {}
  // Only in the thread that made this object.
  [[nodiscard]] bool spent() const noexcept { return used() >= end_; }

 private:
  static std::chrono::nanoseconds used() noexcept {
    timespec time{};
    (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
  }

  std::chrono::nanoseconds end_;
};

// A parent must outlive its children. Thread-safe.
class Cancellation {
 public:
  Cancellation() = default;
  // Also stopped when PARENT is.
  explicit Cancellation(const Cancellation& parent) : parent_{&parent} {}
  explicit Cancellation(Deadline deadline) : deadline_{deadline} {}
  // Stopped by whichever comes first.
  Cancellation(const Cancellation& parent, Deadline deadline)
      : parent_{&parent}, deadline_{deadline} {}
  // For work done by the calling thread alone.
  Cancellation(const Cancellation& parent, Deadline deadline, CpuLimit limit)
      : parent_{&parent}, deadline_{deadline}, cpu_limit_{limit} {}
  Cancellation& operator=(const Cancellation&) = delete;
  ~Cancellation() = default;

  // For work that is never given up.
  [[nodiscard]] static const Cancellation& never() {
    static const Cancellation instance;
    return instance;
  }

  void cancel() noexcept { cancelled_.store(true, std::memory_order_relaxed); }

  // True after cancel() of this object or of a parent; deadlines do not count.
  [[nodiscard]] bool cancelled() const noexcept {
    return cancelled_.load(std::memory_order_relaxed) ||
           (parent_ != nullptr && parent_->cancelled());
  }
  // Costs about 30 ns if there is a deadline, and a system call if there is a limit on CPU time.
  [[nodiscard]] bool stopped() const noexcept {
    return cancelled_.load(std::memory_order_relaxed) || (deadline_ && deadline_->expired()) ||
           (cpu_limit_ && cpu_limit_->spent()) || (parent_ != nullptr && parent_->stopped());
  }

 private:
  const Cancellation* parent_ = nullptr;
  std::optional<Deadline> deadline_;
  std::optional<CpuLimit> cpu_limit_;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace pyinject::base
