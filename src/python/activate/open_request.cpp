#include "python/activate/open_request.hpp"

#include <utility>

namespace pyinject::python {

QueuedCalls queued_calls(const Target& target) {
  const auto mailbox = target.addresses.mailbox;
  return {
      .first = {.function = target.addresses.run_simple_string,
                .argument = mailbox_payload(mailbox).value()},
      .last = {.function = target.addresses.sem_post, .argument = mailbox_done(mailbox).value()}};
}

Progress progress(const Mailbox& mailbox, const PendingQueue& queue, const MainThread& main,
                  const QueuedCalls& calls) {
  if (mailbox.done >= mailbox.requested) {
    return Progress::kNone;
  }
  // CPython removes a call from the queue before it executes it (_pop_pending_call()).
  if (queue.contains(calls.first)) {
    return Progress::kQueued;
  }
  if (queue.contains(calls.last)) {
    return Progress::kOnItsWay;
  }
  if (mailbox.frames_end != 0) {
    return main.registers.stack_pointer().value() < mailbox.frames_end ? Progress::kOnItsWay
                                                                       : Progress::kNone;
  }
  return queue.being_run() ? Progress::kOnItsWay : Progress::kNone;
}

bool take_back(PendingQueue& queue, const QueuedCalls& calls) {
  return queue.take_back(calls.last) && queue.take_back(calls.first);
}

std::variant<QueueAndThread, NotNow, Refusal> look_at_queue(const AttachedTarget& attached) {
  const auto main = attached.main_thread();
  if (!main) {
    return Refusal{
        .reason = Reason::kMainThreadGone,
        .found = "its main thread has exited or left the interpreter",
        .remedy = "only the main thread is asked to switch it on: record --engine bpf needs none"};
  }
  auto queue = attached.queue();
  if (const auto* wrong = std::get_if<std::string>(&queue)) {
    return Refusal{.reason = Reason::kLayoutMismatch,
                   .found = "the queue of pending calls is not as expected: " + *wrong,
                   .remedy = "please report this build"};
  }
  auto& calls = std::get<PendingQueue>(queue);
  if (!attached.queue_unlocked(calls)) {
    return NotNow{"the queue of pending calls is locked"};
  }
  return QueueAndThread{.main = *main, .queue = std::move(calls)};
}

}  // namespace pyinject::python
