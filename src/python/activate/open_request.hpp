// The state of a pending request, read while all threads are stopped.
#pragma once

#include "pyinject/python/reason.hpp"
#include "python/activate/attached_target.hpp"
#include "python/activate/pending_queue.hpp"

#include <string>
#include <variant>

namespace pyinject::python {

// Cannot be done now: the queue is locked or full, ...
struct NotNow {
  std::string why;
};

// The two entries of a request made through the queue.
struct QueuedCalls {
  PendingCall first;  // the payload
  PendingCall last;   // reports that it has run
};
[[nodiscard]] QueuedCalls queued_calls(const Target& target);

enum class Progress {
  kNone,      // no request, or it was never committed
  kQueued,    // nothing of it has run
  kOnItsWay,  // it may be running
};
[[nodiscard]] Progress progress(const Mailbox& mailbox, const PendingQueue& queue,
                                const MainThread& main, const QueuedCalls& calls);

// Removes the entries of a queued request from QUEUE, a copy that the caller then writes. False:
// other calls were queued after them.
[[nodiscard]] bool take_back(PendingQueue& queue, const QueuedCalls& calls);

struct QueueAndThread {
  MainThread main;
  PendingQueue queue;
};
// The main thread, and the queue if no thread is changing it.
[[nodiscard]] std::variant<QueueAndThread, NotNow, Refusal> look_at_queue(
    const AttachedTarget& attached);

}  // namespace pyinject::python
