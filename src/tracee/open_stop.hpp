// A stop of a target, from before the first thread is seized until the last one is detached.
#pragma once

#include <atomic>
#include <cstdint>

namespace pyinject::tracee {

// Notes the stop for shared_stops(), and defers SIGTSTP, SIGTTIN and SIGTTOU of this process while
// any stop is open: this process would be stopped with its target. Only their default action is
// deferred, not a handler of the program that this library is part of.
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
