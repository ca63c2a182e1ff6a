#include "attached_target.hpp"

#include "pyinject/base/fault.hpp"
#include "pyinject/procfs/own_rights.hpp"
#include "pyinject/procfs/stat.hpp"
#include "version_policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace pyinject::python {

namespace {

using std::chrono::milliseconds;

// How long one stop may take to come about. A thread in state D (vfork, a dead NFS server) never
// stops; with many runnable threads it takes a few time slices.
constexpr milliseconds kFirstPatience{25};
constexpr milliseconds kMostPatience{200};
constexpr milliseconds kFirstPause{2};
constexpr milliseconds kMostPause{64};

Refusal refusal_of(const tracee::StopFailure& failure) {
  using Why = tracee::StopFailure::Why;
  const auto who = fmt::format("tid {}: {}", failure.thread.value(), failure.detail);
  switch (failure.why) {
    case Why::kGone:
      return refuse_gone();
    case Why::kTraced:
      return {
          .reason = Reason::kTraced, .found = who, .remedy = "end that debugger or tracer first"};
    case Why::kDenied:
      return {.reason = Reason::kNoPermission,
              .found = who,
              .remedy = procfs::how_to_get(procfs::Capability::kSysPtrace)};
    case Why::kDeadline:
      break;
  }
  return {.reason = Reason::kStopDeadline,
          .found = "it could not be stopped: " + who,
          .remedy = "try again when it no longer waits inside the kernel"};
}

bool session_alive(const Mailbox& mailbox) {
  if (mailbox.owner_pid == 0) {
    return false;
  }
  const auto stat = procfs::read_stat(base::Pid{mailbox.owner_pid});
  return stat && stat->start_time == mailbox.owner_start && stat->state != 'Z' &&
         stat->state != 'X';
}

}  // namespace

std::optional<Refusal> AttachedTarget::still_the_same() const {
  const auto& target = piece_.target;
  // That it is the same process is what the stop has made sure of. The stack: an interpreter that
  // is not position independent is at the same place again when it executes itself, the mailbox is
  // not.
  if (process_.stat().stack_begin != target.stack_begin ||
      piece_.view.main_interpreter() != target.addresses.main_interpreter) {
    return Refusal{.reason = Reason::kExited,
                   .found = "it has ended or executes another program now",
                   .remedy = ""};
  }
  if (piece_.view.finalizing()) {
    return Refusal{
        .reason = Reason::kFinalizing, .found = "its interpreter is shutting down", .remedy = ""};
  }
  return std::nullopt;
}

std::optional<Mailbox> AttachedTarget::mailbox() const {
  return read_mailbox(piece_.memory, piece_.target.addresses.mailbox);
}

base::RemoteAddress AttachedTarget::evaluator() const {
  return piece_.memory.read_pointer(piece_.target.addresses.eval_frame)
      .value_or(base::RemoteAddress{});
}

std::optional<TrampolineState> AttachedTarget::state() const {
  return classify_evaluator(evaluator(), mailbox(), piece_.target.text_begin,
                            piece_.target.text_end);
}

bool AttachedTarget::switch_on(Mailbox mailbox, const Owner& owner) const {
  mailbox.process_pid = piece_.target.inner_pid.value();
  mailbox.process_start = piece_.target.id.start_time;
  mailbox.owner_pid = owner.session.pid.value();
  mailbox.owner_start = owner.session.start_time;
  const auto& at = piece_.target.addresses;
  if (!piece_.memory.write_value(at.mailbox, mailbox)) {
    return false;
  }
  base::reached(base::Step::kOnOwnerWritten);
  const bool stored = piece_.memory.write_value(at.eval_frame, mailbox.evaluator);
  base::reached(base::Step::kOnStored);
  return stored;
}

bool AttachedTarget::switch_off(Mailbox mailbox) const {
  const auto& at = piece_.target.addresses;
  if (const auto now = evaluator(); !now.is_null() && mailbox.evaluator != now.value()) {
    // Not learned yet. Before it is taken away: nobody could switch on again without it.
    mailbox.evaluator = now.value();
    if (!piece_.memory.write_value(at.mailbox + offsetof(Mailbox, evaluator), mailbox.evaluator)) {
      return false;
    }
    base::reached(base::Step::kOffEvaluatorKept);
  }
  mailbox.process_pid = piece_.target.inner_pid.value();
  mailbox.process_start = piece_.target.id.start_time;
  mailbox.owner_pid = 0;
  mailbox.owner_start = 0;
  if (!piece_.memory.write_value(at.eval_frame, std::uint64_t{0})) {
    return false;
  }
  base::reached(base::Step::kOffStored);
  const bool cleared = piece_.memory.write_value(at.mailbox, mailbox);
  base::reached(base::Step::kOffOwnerCleared);
  return cleared;
}

std::optional<MainThread> AttachedTarget::main_thread() const {
  const auto id = piece_.view.main_thread();
  const auto interpreter = piece_.target.addresses.main_interpreter;
  const auto states = piece_.view.threads(interpreter);
  const auto state = std::find_if(states.begin(), states.end(),
                                  [&id](const auto& thread) { return thread.thread_id == id; });
  if (state == states.end()) {
    return std::nullopt;
  }
  for (const auto& thread : process_.threads()) {
    const auto registers = tracee::read_registers(thread.tid);
    if (registers && registers->thread_pointer() == *id) {
      return MainThread{.tid = thread.tid,
                        .state = state->address,
                        .registers = *registers,
                        .call = tracee::interrupted_call(*registers),
                        .holds_gil = piece_.view.holds_gil(interpreter, state->address),
                        .job_control = thread.job_control};
    }
  }
  return std::nullopt;
}

std::variant<PendingQueue, std::string> AttachedTarget::queue() const {
  std::vector<std::byte> bytes(PendingQueue::size(piece_.layout.queue));
  if (!piece_.memory.read(piece_.target.addresses.runtime + piece_.layout.pending_calls, bytes)) {
    return std::string{"it cannot be read"};
  }
  return PendingQueue::parse(piece_.layout.queue, bytes);
}

bool AttachedTarget::write_queue(const PendingQueue& queue) const {
  return piece_.memory.write(piece_.target.addresses.runtime + piece_.layout.pending_calls,
                             queue.bytes());
}

bool AttachedTarget::queue_unlocked(const PendingQueue& queue) const {
  if (!queue.lock_is_semaphore()) {
    return !queue.mutex_held();
  }
  const auto value = piece_.memory.read_value<std::int32_t>(queue.semaphore());
  return value && *value >= 1;
}

std::optional<Refusal> with_stopped_target(const Workpiece& piece, base::Deadline deadline,
                                           std::chrono::nanoseconds& stopped,
                                           const std::function<bool(const AttachedTarget&)>& work) {
  std::optional<Refusal> refusal;
  milliseconds patience = kFirstPatience;
  milliseconds between = kFirstPause;
  while (true) {
    bool again = false;
    tracee::on_tracer_thread([&] {
      auto attempt = tracee::StoppedProcess::stop(
          piece.target.id, deadline.earlier(base::Deadline::after(patience)));
      if (const auto* failure = std::get_if<tracee::StopFailure>(&attempt)) {
        again = failure->why == tracee::StopFailure::Why::kDeadline;
        refusal = refusal_of(*failure);
        return;
      }
      auto& process = std::get<tracee::StoppedProcess>(attempt);
      const AttachedTarget attached{piece, process};
      refusal = attached.still_the_same();
      if (!refusal) {
        again = !work(attached);
      }
      stopped = process.release();
      base::reached(base::Step::kAllReleased);
    });
    if (!again || deadline.expired()) {
      return refusal;
    }
    patience = std::min(patience * 2, kMostPatience);
    std::this_thread::sleep_for(between);
    between = std::min(between * 2, kMostPause);
  }
}

std::optional<Refusal> refuse_others_session(const Mailbox& mailbox, pid_t own) {
  if (mailbox.owner_pid == own || !session_alive(mailbox)) {
    return std::nullopt;
  }
  return Refusal{
      .reason = Reason::kOtherSession,
      .found = fmt::format("another perf-pyinject (pid {}) is recording it", mailbox.owner_pid),
      .remedy = "wait for its end, or stop it"};
}

Refusal refuse_gone() { return {.reason = Reason::kExited, .found = "it has ended", .remedy = ""}; }

}  // namespace pyinject::python
