// The interpreter's queue of calls for the main thread (Py_AddPendingCall), as bytes. Pure.
#pragma once

#include "pyinject/base/remote_address.hpp"
#include "python/layout/runtime_layout.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace pyinject::python {

struct PendingCall {
  base::RemoteAddress function;  // int (*)(void *): 0, or -1 with an exception set
  std::uint64_t argument = 0;
  bool operator==(const PendingCall&) const = default;
};

class PendingQueue {
 public:
  // Number of bytes that parse() needs, starting at RuntimeLayout::pending_calls.
  [[nodiscard]] static std::size_t size(QueueForm form);

  // A string says which values are not valid in a queue.
  [[nodiscard]] static std::variant<PendingQueue, std::string> parse(
      QueueForm form, std::span<const std::byte> bytes);

  // The lock: on 3.12 a pointer to a POSIX semaphore (its int is 0 while held), from 3.13 on a
  // PyMutex byte inside the queue (bit 0 is set while held).
  [[nodiscard]] bool lock_is_semaphore() const { return form_ == QueueForm::kRing32; }
  [[nodiscard]] base::RemoteAddress semaphore() const;
  [[nodiscard]] bool mutex_held() const;

  // A thread is running queued calls right now. 3.12 only: later versions store this in another
  // structure (PyInterpreterState.ceval.pending), and this is always false.
  [[nodiscard]] bool being_run() const;
  [[nodiscard]] std::size_t free_slots() const;
  [[nodiscard]] bool contains(const PendingCall& call) const;
  // Appends CALL; the caller must have checked free_slots().
  void push(const PendingCall& call);
  // Undoes the last push() if CALL is still the last entry; false: it is not.
  [[nodiscard]] bool take_back(const PendingCall& call);

  // The whole structure, for one contiguous write: a half-written queue would stay corrupt forever.
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  PendingQueue(QueueForm form, std::span<const std::byte> bytes)
      : form_{form}, bytes_(bytes.begin(), bytes.end()) {}
  template <typename Value>
  [[nodiscard]] Value get(std::size_t at) const;
  template <typename Value>
  void set(std::size_t at, Value value);
  [[nodiscard]] std::string implausible() const;
  [[nodiscard]] std::uint32_t queued() const;
  [[nodiscard]] PendingCall entry(std::uint32_t index) const;

  QueueForm form_;
  std::vector<std::byte> bytes_;
};

}  // namespace pyinject::python
