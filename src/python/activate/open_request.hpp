// A request that was made and whose end nobody has seen yet: where it is, while all threads stand.
#pragma once

#include "pyinject/python/reason.hpp"
#include "python/activate/attached_target.hpp"
#include "python/activate/pending_queue.hpp"

#include <string>
#include <variant>

namespace pyinject::python {

// Not now: somebody holds the queue's lock, the queue is full, ...
struct NotNow {
  std::string why;
};

// The two entries of a request that goes through the queue.
struct QueuedCalls {
  PendingCall first;  // the payload
  PendingCall last;   // says that it has run
};
[[nodiscard]] QueuedCalls queued_calls(const Target& target);

enum class Progress {
  kNone,      // there is none, or it was never committed
  kQueued,    // nothing of it has run
  kOnItsWay,  // it may be running
};
[[nodiscard]] Progress progress(const Mailbox& mailbox, const PendingQueue& queue,
                                const MainThread& main, const QueuedCalls& calls);

// Takes the entries of a queued request out of QUEUE, a copy that is still to be written. False:
// something was queued behind them.
[[nodiscard]] bool take_back(PendingQueue& queue, const QueuedCalls& calls);

struct QueueAndThread {
  MainThread main;
  PendingQueue queue;
};
// The main thread, and the queue while nobody changes it.
[[nodiscard]] std::variant<QueueAndThread, NotNow, Refusal> look_at_queue(
    const AttachedTarget& attached);

}  // namespace pyinject::python
