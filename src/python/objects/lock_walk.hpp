// Finds the lock that a thread waits for. Pure: any memory in, values out.
#pragma once

#include "python/objects/object_reader.hpp"
#include "python/objects/remote_objects.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pyinject::python {

// A frame of the waiting thread.
struct NamedFrame {
  base::RemoteAddress address;
  base::RemoteAddress code;
  CodeNames names;
};

struct RawWait {
  Wait::Kind kind = Wait::Kind::kLock;
  std::string object;
  base::RemoteAddress address;
  std::optional<std::uint64_t> owner;  // pthread_self() of the thread that must act
  std::uint64_t count = 0;
  bool operator==(const RawWait&) const = default;
};

class LockWalk {
 public:
  explicit LockWalk(const RemoteObjects& objects) : objects_{objects} {}

  // FRAMES: innermost first. FUTEX: the address for which the thread waits in the kernel. nullopt:
  // it does not wait for one of the known objects, or the frames have changed.
  [[nodiscard]] std::optional<RawWait> wait(std::span<const NamedFrame> frames,
                                            base::RemoteAddress futex) const;

  // Whether the call at FRAME of the function at CODE is inside `with LOCK:`, that is, its __exit__
  // will be called. False also if that is not certain.
  [[nodiscard]] bool holds(base::RemoteAddress frame, base::RemoteAddress code,
                           base::RemoteAddress lock) const;

 private:
  // A lock that C code implements.
  struct Lock {
    base::RemoteAddress address;
    bool recursive = false;
    bool mutex = false;  // a PyMutex; false: a semaphore
  };
  [[nodiscard]] std::optional<Lock> lock_at(base::RemoteAddress object) const;
  [[nodiscard]] std::optional<Lock> find_lock(const NamedFrame& frame,
                                              base::RemoteAddress futex) const;
  [[nodiscard]] RawWait owned(const Lock& lock) const;
  // What the functions of the standard library that called acquire() wait for.
  [[nodiscard]] std::optional<RawWait> find_purpose(std::span<const NamedFrame> frames) const;
  [[nodiscard]] bool joins(const NamedFrame& frame, base::RemoteAddress futex) const;
  // Live words of the frame's evaluation stack: those that cannot have been popped.
  [[nodiscard]] std::vector<base::RemoteAddress> live_words(base::RemoteAddress frame,
                                                            base::RemoteAddress code) const;
  [[nodiscard]] std::optional<base::RemoteAddress> first_argument(const NamedFrame& frame) const;

  const RemoteObjects& objects_;
};

}  // namespace pyinject::python
