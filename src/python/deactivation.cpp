#include "python/deactivation.hpp"

#include "open_request.hpp"
#include "pyinject/base/fault.hpp"
#include "pyinject/procfs/stat.hpp"

#include <algorithm>
#include <thread>

#include <unistd.h>

namespace pyinject::python {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

bool open(const Mailbox& mailbox) {
  return mailbox.requested > mailbox.done || mailbox.outcome == kWithdrawing;
}

}  // namespace

// What SESSION, or a session that is no more, has left. False with REFUSAL_: a living one's.
bool Deactivate::concerns_us(const Mailbox& mailbox) {
  const base::ProcessId owner{.pid = base::Pid{mailbox.owner_pid},
                              .start_time = mailbox.owner_start};
  if (options_.only_of && owner != *options_.only_of) {
    return false;
  }
  refusal_ = refuse_others_session(mailbox, ::getpid());
  return !refusal_;
}

// Without a stop: a target that is off, and of which nothing is asked.
bool Deactivate::nothing_to_do() const {
  const auto mailbox = read_mailbox(piece_.memory, piece_.target.addresses.mailbox);
  const auto evaluator = piece_.memory.read_pointer(piece_.target.addresses.eval_frame);
  return evaluator && evaluator->is_null() && (!mailbox || !open(*mailbox));
}

// The queued call, when it runs, runs an empty program. One byte is one store, so this needs no
// stop. The mark first: if the payload is running already, what comes of it is ours.
void Deactivate::blank_payload() const {
  const auto mailbox = piece_.target.addresses.mailbox;
  (void)piece_.memory.write_value(mailbox + offsetof(Mailbox, outcome),
                                  std::uint32_t{kWithdrawing});
  (void)piece_.memory.write_value(mailbox_payload(mailbox), '\0');
  base::reached(base::Step::kPayloadBlanked);
}

// Before any stop, which may never come about (a thread in state D): from now on nothing that was
// asked for can run.
void Deactivate::blank_open_request() {
  const auto mailbox = read_mailbox(piece_.memory, piece_.target.addresses.mailbox);
  if (mailbox && open(*mailbox) && concerns_us(*mailbox) &&
      procfs::read_process_id(piece_.target.id.pid) == piece_.target.id) {
    blank_payload();
  }
}

// A request has been made; the target is off.
bool Deactivate::settle(const AttachedTarget& attached, Mailbox mailbox) {
  if (mailbox.outcome != kWithdrawing) {
    blank_payload();
  }
  if (mailbox.requested > mailbox.done) {
    auto looked = look_at_queue(attached);
    if (std::holds_alternative<NotNow>(looked)) {
      return false;
    }
    if (auto* here = std::get_if<QueueAndThread>(&looked)) {
      const auto calls = queued_calls(piece_.target);
      switch (progress(mailbox, here->queue, here->main, calls)) {
        case Progress::kOnItsWay:
          return false;
        case Progress::kQueued:
          if (!take_back(here->queue, calls)) {
            return true;  // it will run an empty program, and the request stays open until then
          }
          if (!attached.write_queue(here->queue)) {
            return false;
          }
          base::reached(base::Step::kTakenBack);
          break;
        case Progress::kNone:
          break;
      }
    } else if (std::get<Refusal>(looked).reason != Reason::kMainThreadGone) {
      return true;
    }
    mailbox.requested = mailbox.done;
  }
  mailbox.outcome = kNothingSpecial;
  mailbox.payload[0] = '\0';
  mailbox.frames_end = 0;
  mailbox.owner_pid = 0;
  mailbox.owner_start = 0;
  return piece_.memory.write_value(piece_.target.addresses.mailbox, mailbox);
}

bool Deactivate::attempt(const AttachedTarget& attached) {
  auto mailbox = attached.mailbox();
  if (!mailbox || !concerns_us(*mailbox)) {
    return true;
  }
  const auto state = attached.state();
  if (state == TrampolineState::kOnByUs) {
    result_.mechanism = Mechanism::kStore;
    if (mailbox->outcome == kWithdrawing) {
      mailbox->outcome = kNothingSpecial;
    }
    if (!attached.switch_off(*mailbox)) {
      refusal_ = refuse_gone();
    }
    return true;
  }
  if (state != TrampolineState::kOff || !open(*mailbox)) {
    return true;
  }
  return settle(attached, *mailbox);
}

std::variant<Deactivation, Refusal> Deactivate::run() {
  if (nothing_to_do()) {
    return result_;
  }
  blank_open_request();
  bool settled = false;
  nanoseconds pause = milliseconds{1};
  while (true) {
    nanoseconds stopped{};
    auto failure =
        with_stopped_target(piece_, deadline_, stopped, [&](const AttachedTarget& attached) {
          settled = attempt(attached);
          return true;
        });
    result_.stopped = std::max(result_.stopped, stopped);
    if (failure) {
      return *failure;
    }
    if (refusal_) {
      return *refusal_;
    }
    if (settled) {
      return result_;
    }
    if (deadline_.expired()) {
      return Refusal{.reason = Reason::kDeadline,
                     .found = "a request to switch on is on its way through it",
                     .remedy = "it was withdrawn; deactivate it again once it runs Python code"};
    }
    std::this_thread::sleep_for(pause);
    pause = std::min<nanoseconds>(pause * 2, milliseconds{50});
  }
}

}  // namespace pyinject::python
