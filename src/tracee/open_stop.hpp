// A stop of a target, from before the first thread is seized until the last one is detached.
#pragma once

#include <atomic>
#include <cstdint>

namespace pyinject::tracee {

// Records the stop for shared_stops(), and defers SIGTSTP, SIGTTIN and SIGTTOU of this process
// while any stop is open: otherwise this process could be stopped together with its target. Only
// defers their default action, not a handler of the program that uses this library.
class OpenStop {
 public:
  OpenStop();
  ~OpenStop();
  OpenStop(const OpenStop&) = delete;
  OpenStop& operator=(const OpenStop&) = delete;

 private:
  std::atomic<std::uint64_t>* slot_ = nullptr;
};

}  // namespace pyinject::tracee
