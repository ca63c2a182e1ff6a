// What became of the profiles of a run.
#pragma once

#include <atomic>
#include <cstdint>

namespace pyinject::push {

struct PushCounts {
  std::uint64_t pushed = 0;   // accepted by a store, or written to a directory
  std::uint64_t retried = 0;  // attempts that another one followed, or will follow
  std::uint64_t dropped = 0;  // refused by a store, or without room
  std::uint64_t merged = 0;   // sets of labels that have no profile of their own
  std::uint64_t spooled = 0;  // on the disk now
};

// Of several threads.
struct LiveCounts {
  std::atomic<std::uint64_t> pushed = 0;
  std::atomic<std::uint64_t> retried = 0;
  std::atomic<std::uint64_t> dropped = 0;
  std::atomic<std::uint64_t> merged = 0;
};

}  // namespace pyinject::push
