#include "python/activate/attached_target.hpp"

#include "base/fault.hpp"
#include "procfs/own_rights.hpp"
#include "procfs/stat.hpp"
#include "procfs/tasks.hpp"
#include "pyinject/base/error.hpp"
#include "python/layout/version_policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
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
// For other tracers to let it go. gdb and strace stay; a tracer in a pid namespace that this
// process cannot see, which leads to EPERM, may be another perf-pyinject.
constexpr milliseconds kPatienceWithTracers{500};

bool may_succeed_later(tracee::StopFailure::Why why, const base::Deadline& tracers_end) {
  using Why = tracee::StopFailure::Why;
  switch (why) {
    case Why::kDeadline:
    case Why::kTracedBriefly:
      return true;
    case Why::kTraced:
    case Why::kDenied:
      return !tracers_end.expired();
    case Why::kGone:
      break;
  }
  return false;
}

Refusal refusal_of(const tracee::StopFailure& failure) {
  using Why = tracee::StopFailure::Why;
  const auto who = fmt::format("tid {}: {}", failure.thread.value(), failure.detail);
  switch (failure.why) {
    case Why::kGone:
      return exited();
    case Why::kTraced:
      return {.reason = Reason::kTraced,
              .found = who,
              .remedy = "detach that debugger or tracer first"};
    case Why::kTracedBriefly:
      return {.reason = Reason::kTraced,
              .found = who + ", another perf-pyinject",
              .remedy = "try again when it has detached"};
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

// What was read of the target's memory. Not to have it says nothing about the target.
template <typename Value>
Value require(const std::optional<Value>& read) {
  if (!read) {
    throw base::SystemError{"cannot read its memory", errno};
  }
  return *read;
}

// None of its threads runs a program any more.
bool is_ending(base::Pid pid) {
  constexpr std::uint64_t kExiting = 4;  // PF_EXITING
  const auto tasks = procfs::list_tasks(pid);
  return !tasks.empty() && std::ranges::all_of(tasks, [pid](base::Tid tid) {
    const auto stat = procfs::read_stat(pid, tid);
    return stat ? (stat->flags & kExiting) != 0 : errno == ENOENT || errno == ESRCH;
  });
}

}  // namespace

void require_written(bool written) {
  if (!written) {
    throw base::SystemError{"cannot write its memory", errno};
  }
}

std::optional<Refusal> AttachedTarget::still_the_same() const {
  const auto& target = context_.target;
  // That it is the same process is what the stop has made sure of. The stack: an interpreter that
  // is not position independent is at the same place again when it executes itself, the mailbox is
  // not.
  const auto stack_begin = process_.stat().stack_begin;
  const bool same_program = stack_begin.is_null() || stack_begin == target.stack_begin;
  if (same_program) {
    (void)require(
        context_.memory.read_pointer(target.addresses.runtime + context_.layout.interpreters_main));
  }
  if (!same_program || context_.view.main_interpreter() != target.addresses.main_interpreter) {
    return Refusal{.reason = Reason::kExited,
                   .found = "the process exited or runs another program now",
                   .remedy = ""};
  }
  if (context_.view.finalizing()) {
    return Refusal{
        .reason = Reason::kFinalizing, .found = "its interpreter is shutting down", .remedy = ""};
  }
  return std::nullopt;
}

std::optional<Mailbox> AttachedTarget::mailbox() const {
  const auto found =
      require(context_.memory.read_value<Mailbox>(context_.target.addresses.mailbox));
  return found.magic == kMailboxMagic ? std::optional{found} : std::nullopt;
}

base::RemoteAddress AttachedTarget::evaluator() const {
  return require(context_.memory.read_pointer(context_.target.addresses.eval_frame));
}

std::optional<TrampolineState> AttachedTarget::state() const {
  return classify_evaluator(evaluator(), mailbox(), context_.target.text_begin,
                            context_.target.text_end);
}

bool AttachedTarget::switch_on(Mailbox mailbox, const Owner& owner) const {
  mailbox.process_pid = context_.target.inner_pid.value();
  mailbox.process_start = context_.target.id.start_time;
  mailbox.owner_pid = owner.session.pid.value();
  mailbox.owner_start = owner.session.start_time;
  mailbox.owner_namespace = owner.pid_namespace;
  const auto& at = context_.target.addresses;
  if (!context_.memory.write_value(at.mailbox, mailbox)) {
    return false;
  }
  base::reached(base::Step::kOnOwnerWritten);
  const bool stored = context_.memory.write_value(at.eval_frame, mailbox.evaluator);
  base::reached(base::Step::kOnStored);
  return stored;
}

bool AttachedTarget::switch_off(Mailbox mailbox) const {
  const auto& at = context_.target.addresses;
  if (const auto now = evaluator(); !now.is_null() && mailbox.evaluator != now.value()) {
    // Not learned yet. Before it is taken away: nobody could switch on again without it.
    mailbox.evaluator = now.value();
    if (!context_.memory.write_value(at.mailbox + offsetof(Mailbox, evaluator),
                                     mailbox.evaluator)) {
      return false;
    }
    base::reached(base::Step::kOffEvaluatorKept);
  }
  mailbox.process_pid = context_.target.inner_pid.value();
  mailbox.process_start = context_.target.id.start_time;
  mailbox.owner_pid = 0;
  mailbox.owner_start = 0;
  mailbox.owner_namespace = 0;
  if (!context_.memory.write_value(at.eval_frame, std::uint64_t{0})) {
    return false;
  }
  base::reached(base::Step::kOffStored);
  const bool cleared = context_.memory.write_value(at.mailbox, mailbox);
  base::reached(base::Step::kOffOwnerCleared);
  return cleared;
}

std::optional<MainThread> AttachedTarget::main_thread() const {
  const auto id = context_.view.main_thread();
  const auto interpreter = context_.target.addresses.main_interpreter;
  const auto states = context_.view.threads(interpreter);
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
                        .holds_gil = context_.view.holds_gil(interpreter, state->address),
                        .job_control = thread.job_control};
    }
  }
  return std::nullopt;
}

std::variant<PendingQueue, std::string> AttachedTarget::queue() const {
  std::vector<std::byte> bytes(PendingQueue::size(context_.layout.queue));
  if (!context_.memory.read(context_.target.addresses.runtime + context_.layout.pending_calls,
                            bytes)) {
    return std::string{"it cannot be read"};
  }
  return PendingQueue::parse(context_.layout.queue, bytes);
}

bool AttachedTarget::write_queue(const PendingQueue& queue) const {
  return context_.memory.write(context_.target.addresses.runtime + context_.layout.pending_calls,
                               queue.bytes());
}

bool AttachedTarget::queue_unlocked(const PendingQueue& queue) const {
  if (!queue.lock_is_semaphore()) {
    return !queue.mutex_held();
  }
  const auto value = context_.memory.read_value<std::int32_t>(queue.semaphore());
  return value && *value >= 1;
}

std::optional<Refusal> with_stopped_target(const AttachContext& context, base::Deadline deadline,
                                           std::chrono::nanoseconds& stopped,
                                           const std::function<bool(const AttachedTarget&)>& work) {
  std::optional<Refusal> refusal;
  const auto tracers_end = base::Deadline::after(kPatienceWithTracers);
  milliseconds patience = kFirstPatience;
  milliseconds between = kFirstPause;
  while (true) {
    bool again = false;
    tracee::on_tracer_thread([&] {
      auto attempt = tracee::StoppedProcess::stop(
          context.target.id, deadline.earlier(base::Deadline::after(patience)));
      if (const auto* failure = std::get_if<tracee::StopFailure>(&attempt)) {
        again = may_succeed_later(failure->why, tracers_end);
        refusal = refusal_of(*failure);
        return;
      }
      auto& process = std::get<tracee::StoppedProcess>(attempt);
      const AttachedTarget attached{context, process};
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

std::optional<Refusal> refuse_others_session(const Target& target, const Mailbox& mailbox,
                                             base::ProcessId own) {
  const base::ProcessId owner{.pid = base::Pid{mailbox.owner_pid},
                              .start_time = mailbox.owner_start};
  if (owner == own) {
    return std::nullopt;
  }
  const auto state = owner_state(owner, mailbox.owner_namespace, target.inner_pid == target.id.pid);
  if (state == OwnerState::kNone || state == OwnerState::kGone) {
    return std::nullopt;
  }
  if (state == OwnerState::kUnknown) {
    return Refusal{
        .reason = Reason::kOtherSession,
        .found = fmt::format("another perf-pyinject, which has pid {} in a pid namespace "
                             "that cannot be seen from here, may be recording it",
                             mailbox.owner_pid),
        .remedy = "run this command in the host's pid namespace"};
  }
  return Refusal{
      .reason = Reason::kOtherSession,
      .found = fmt::format("another perf-pyinject (pid {}) is recording it", mailbox.owner_pid),
      .remedy = "wait for its end, or stop it"};
}

bool is_no_more(const Target& target) {
  if (procfs::has_ended(target.id) || is_ending(target.id.pid)) {
    return true;
  }
  const auto maps = procfs::read_maps(target.id.pid);
  if (!maps || maps->empty()) {
    return false;  // perhaps only its first thread has ended
  }
  const auto* const code = procfs::find_mapping(*maps, target.text_begin);
  const auto stat = procfs::read_stat(target.id.pid);
  return code == nullptr || !code->executable ||
         (stat && !stat->stack_begin.is_null() && stat->stack_begin != target.stack_begin);
}

bool has_no_interpreter(const AttachContext& context) {
  if (context.view.main_interpreter()) {
    return false;
  }
  const auto at = context.target.addresses.runtime + context.layout.interpreters_main;
  return context.memory.read_pointer(at) || is_no_more(context.target);
}

Refusal exited() {
  return {.reason = Reason::kExited, .found = "the process exited", .remedy = ""};
}

}  // namespace pyinject::python
