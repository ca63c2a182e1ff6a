#include "python/activate/deactivation.hpp"

#include "base/fault.hpp"
#include "procfs/stat.hpp"
#include "python/activate/open_request.hpp"
#include "python/activate/pinned_arenas.hpp"
#include "python/examine/code_arenas.hpp"

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

// Whether the mailbox's owner is options_.only_of or, if that is unset, has exited. False with
// REFUSAL_ set: the owner is a session that still runs.
bool Deactivate::concerns_us(const Mailbox& mailbox) {
  const base::ProcessId owner{.pid = base::Pid{mailbox.owner_pid},
                              .start_time = mailbox.owner_start};
  if (options_.only_of) {
    return owner == *options_.only_of;  // even while that session is still exiting
  }
  const base::Pid own{::getpid()};
  const auto stat = procfs::read_stat(own);
  refusal_ = refuse_others_session(context_.target, mailbox,
                                   {.pid = own, .start_time = stat ? stat->start_time : 0});
  return !refusal_;
}

// Checked without a stop: the target is off and has no open request.
bool Deactivate::nothing_to_do() const {
  const auto mailbox = read_mailbox(context_.memory, context_.target.addresses.mailbox);
  const auto evaluator = context_.memory.read_pointer(context_.target.addresses.eval_frame);
  return evaluator && evaluator->is_null() && (!mailbox || !open(*mailbox));
}

// Of a target that is off: what this session switched on is off, and no session did that. At its
// end, the interpreter does.
bool Deactivate::switched_off_by_itself() const {
  const auto mailbox = read_mailbox(context_.memory, context_.target.addresses.mailbox);
  return mailbox && options_.only_of && mailbox->owner_pid == options_.only_of->pid.value() &&
         mailbox->owner_start == options_.only_of->start_time && context_.view.initialized() &&
         !context_.view.finalizing();
}

// Checked without a stop: another session, which still runs, switched the target on.
bool Deactivate::others_session() {
  const auto mailbox = read_mailbox(context_.memory, context_.target.addresses.mailbox);
  return mailbox && !concerns_us(*mailbox) && refusal_;
}

// Makes the queued call run an empty program. One byte is one store, so this needs no stop. Sets
// the mark first: if the payload is already running, the result is ours.
void Deactivate::blank_payload() const {
  const auto mailbox = context_.target.addresses.mailbox;
  require_written(context_.memory.write_value(mailbox + offsetof(Mailbox, outcome),
                                              std::uint32_t{kWithdrawing}));
  require_written(context_.memory.write_value(mailbox_payload(mailbox), '\0'));
  base::reached(base::Step::kPayloadBlanked);
}

// Done before any stop, which may never succeed (a thread in state D): from now on no pending
// request can run.
void Deactivate::blank_open_request() {
  const auto mailbox = read_mailbox(context_.memory, context_.target.addresses.mailbox);
  if (mailbox && open(*mailbox) && concerns_us(*mailbox) &&
      procfs::read_process_id(context_.target.id.pid) == context_.target.id) {
    blank_payload();
  }
}

// Settles a pending request of a target that is off.
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
      const auto calls = queued_calls(context_.target);
      switch (progress(mailbox, here->queue, here->main, calls)) {
        case Progress::kOnItsWay:
          return false;
        case Progress::kQueued:
          if (!take_back(here->queue, calls)) {
            return true;  // it will run an empty program; until then the request stays open
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
  mailbox.owner_namespace = 0;
  return context_.memory.write_value(context_.target.addresses.mailbox, mailbox);
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
    if (const auto problem = pin_code_arenas(context_, context_.maps)) {
      result_.note = unpinned_note(*problem);
    }
    require_written(attached.switch_off(*mailbox));
    return true;
  }
  if (state != TrampolineState::kOff || !open(*mailbox)) {
    return true;
  }
  return settle(attached, *mailbox);
}

std::variant<Deactivation, Refusal> Deactivate::run() {
  if (nothing_to_do()) {
    result_.off_by_program = switched_off_by_itself();
    return result_;
  }
  if (others_session()) {
    return *refusal_;
  }
  blank_open_request();
  bool settled = false;
  nanoseconds pause = milliseconds{1};
  while (true) {
    nanoseconds stopped{};
    auto failure =
        with_stopped_target(context_, deadline_, stopped, [&](const AttachedTarget& attached) {
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
                     .found = "a request to switch it on was still pending",
                     .remedy = "the request was withdrawn"};
    }
    std::this_thread::sleep_for(pause);
    pause = std::min<nanoseconds>(pause * 2, milliseconds{50});
  }
}

}  // namespace pyinject::python
