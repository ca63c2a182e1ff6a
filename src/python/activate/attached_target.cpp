#include "python/activate/attached_target.hpp"

#include "base/fault.hpp"
#include "procfs/stat.hpp"
#include "procfs/tasks.hpp"
#include "pyinject/base/error.hpp"
#include "python/activate/while_stopped.hpp"
#include "python/layout/version_policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

namespace pyinject::python {

namespace {

// Throws if READ, from the target's memory, is missing: a failed read says nothing about the
// target.
template <typename Value>
Value require(const std::optional<Value>& read) {
  if (!read) {
    throw base::SystemError{"cannot read its memory", errno};
  }
  return *read;
}

// Whether all its threads are exiting or gone.
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
  // The stop has verified that it is the same process. The stack is checked because an interpreter
  // that is not position independent is at the same address after it execs itself, but the mailbox
  // is not.
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
    // Not stored yet. Store it before removing it from eval_frame: it is needed to switch on again.
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
  return while_stopped(context.target.id, deadline, stopped,
                       [&](const tracee::StoppedProcess& process) {
                         const AttachedTarget attached{context, process};
                         AfterStop after{.refusal = attached.still_the_same()};
                         after.again = !after.refusal && !work(attached);
                         return after;
                       });
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
    return Refusal{.reason = Reason::kOtherSession,
                   .found = fmt::format("another perf-pyinject (pid {} in a pid namespace that is "
                                        "not visible here) may be recording it",
                                        mailbox.owner_pid),
                   .remedy = "run this command in the host's pid namespace"};
  }
  return Refusal{
      .reason = Reason::kOtherSession,
      .found = fmt::format("another perf-pyinject (pid {}) is recording it", mailbox.owner_pid),
      .remedy = "wait until that perf-pyinject ends, or stop it"};
}

bool is_no_more(const Target& target) {
  if (procfs::has_ended(target.id) || is_ending(target.id.pid)) {
    return true;
  }
  const auto maps = procfs::read_maps(target.id.pid);
  if (!maps || maps->empty()) {
    return false;  // perhaps only its first thread has exited
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

}  // namespace pyinject::python
