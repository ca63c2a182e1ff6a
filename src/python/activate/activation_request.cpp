#include "python/activate/activation_request.hpp"

#include "base/fault.hpp"
#include "base/text.hpp"
#include "procfs/cgroup.hpp"
#include "procfs/seccomp_filter.hpp"
#include "tracee/seccomp.hpp"
#include "tracee/signal_frames.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace pyinject::python {

namespace {

// The effect of the main thread's seccomp filters on the activation.
struct SeccompVerdict {
  std::optional<Refusal> refusal;
  bool unread = false;
  bool sigreturn = true;  // rt_sigreturn is permitted: signal frames can be used
};

SeccompVerdict judge_seccomp(base::Tid thread) {
  SeccompVerdict verdict;
  const auto filters = tracee::read_seccomp_filters(thread);
  if (!filters) {
    verdict.unread = true;
    verdict.sigreturn = false;  // choose the way that needs the fewest system calls
    return verdict;
  }
  for (const auto& problem : procfs::judge(*filters)) {
    if (problem.call == "rt_sigreturn") {
      verdict.sigreturn = false;
    } else if (problem.certain && (problem.outcome == procfs::SeccompOutcome::kKills ||
                                   problem.outcome == procfs::SeccompOutcome::kFails)) {
      verdict.refusal = Refusal{
          .reason = Reason::kSeccomp,
          .found = fmt::format("its seccomp filter {} {}, which CPython's trampoline needs",
                               problem.outcome == procfs::SeccompOutcome::kKills
                                   ? "kills the process for"
                                   : "forbids",
                               problem.call),
          .remedy =
              "allow that call in the service's seccomp profile (systemd SystemCallFilter=, "
              "MemoryDenyWriteExecute=; Docker --security-opt seccomp=)"};
      return verdict;
    }
  }
  return verdict;
}

// Room required on the main thread's stack for a call: PyRun_SimpleString needs less than 24 KiB
// (measured), the frames themselves up to 16 KiB with AMX in use.
constexpr std::uint64_t kStackRoom = std::uint64_t{64} << 10U;
constexpr std::uint64_t kGrowingStackRoom = std::uint64_t{32} << 10U;

class Request {
 public:
  Request(const AttachedTarget& attached, std::optional<Mechanism> only, const MainThread& main,
          PendingQueue queue, bool sigreturn_allowed)
      : attached_{attached},
        only_{only},
        main_{main},
        queue_{std::move(queue)},
        sigreturn_allowed_{sigreturn_allowed} {}

  [[nodiscard]] Mechanism choose() const;
  [[nodiscard]] bool carry_out(Mechanism mechanism);
  [[nodiscard]] std::string whereabouts() const;

 private:
  [[nodiscard]] bool called_by_cpython() const;
  [[nodiscard]] bool frames_possible() const;
  [[nodiscard]] bool write_queue() const;
  [[nodiscard]] bool enqueue();
  [[nodiscard]] bool set_eval_breaker() const;
  [[nodiscard]] bool run_frames(std::span<const tracee::RemoteCall> calls) const;
  [[nodiscard]] const AttachContext& context() const { return attached_.context(); }
  [[nodiscard]] base::RemoteAddress done() const {
    return mailbox_done(context().target.addresses.mailbox);
  }
  [[nodiscard]] base::RemoteAddress payload() const {
    return mailbox_payload(context().target.addresses.mailbox);
  }

  const AttachedTarget& attached_;
  std::optional<Mechanism> only_;
  MainThread main_;
  PendingQueue queue_;
  bool sigreturn_allowed_;
};

Mechanism Request::choose() const {
  if (only_) {
    return *only_;
  }
  const auto& call = main_.call;
  if (call.kind == tracee::Interrupted::kNo || main_.job_control) {
    return Mechanism::kPendingQueue;
  }
  if (call.futex) {
    // Never call into a thread that waits in a futex: PyGILState_Ensure would nest take_gil and
    // deadlock. EINTR makes lock.acquire run the pending calls; every futex user expects it.
    return Mechanism::kPendingQueueWakeup;
  }
  if (call.kind == tracee::Interrupted::kTimed && !called_by_cpython()) {
    return Mechanism::kPendingQueue;  // a foreign caller may not expect EINTR
  }
  if (call.restarted && !main_.holds_gil) {
    // Sufficient for a futex. Otherwise CPython repeats the call, and the next stop sees which.
    return Mechanism::kPendingQueueWakeup;
  }
  if (!main_.holds_gil && frames_possible()) {
    return Mechanism::kGilFrames;
  }
  return Mechanism::kPendingQueue;
}

// Whether the interrupted system call is one of CPython's own, which repeats it after EINTR (PEP
// 475).
bool Request::called_by_cpython() const {
  const auto caller =
      context().libc ? context().libc->find(context().memory, main_.registers) : std::nullopt;
  if (!caller) {
    return false;
  }
  const auto& target = context().target;
  const auto* code = procfs::find_mapping(context().maps, *caller);
  return (target.text_begin <= *caller && *caller < target.text_end) ||
         (code != nullptr && code->path.find("/lib-dynload/") != std::string::npos);
}

bool Request::frames_possible() const {
  // An exception raised by a Python signal handler must hit the program, not our payload.
  if (!sigreturn_allowed_ || tracee::has_shadow_stack(main_.tid) ||
      context().view.signal_pending(main_.state) ||
      tracee::in_restartable_sequence(main_.tid, main_.registers)) {
    return false;
  }
  const auto pointer = main_.registers.stack_pointer();
  const auto* stack = procfs::find_mapping(context().maps, pointer);
  // The first thread's stack grows automatically; the frames themselves need existing pages.
  return stack != nullptr && pointer.value() - stack->begin.value() >=
                                 (stack->path == "[stack]" ? kGrowingStackRoom : kStackRoom);
}

bool Request::set_eval_breaker() const {
  const auto& layout = context().layout;
  const auto& memory = context().memory;
  if (!layout.eval_breaker_per_thread) {
    return memory.write_value(context().target.addresses.main_interpreter + layout.eval_breaker,
                              std::int32_t{1});
  }
  const auto at = main_.state + layout.eval_breaker;
  const auto word = memory.read_value<std::uint64_t>(at);
  return word && memory.write_value(at, *word | layout.calls_to_do_bit);
}

bool Request::write_queue() const { return attached_.write_queue(queue_); }

// First the breaker, which has no effect by itself; then the whole queue in one write, which
// commits.
bool Request::enqueue() {
  const auto [first, last] = queued_calls(context().target);
  queue_.push(first);
  queue_.push(last);
  if (!set_eval_breaker()) {
    return false;
  }
  base::reached(base::Step::kBreakerSet);
  const bool written = write_queue();
  base::reached(base::Step::kQueueWritten);
  return written;
}

bool Request::run_frames(std::span<const tracee::RemoteCall> calls) const {
  const auto state = tracee::read_extended_state(main_.tid);
  const auto mask = tracee::read_signal_mask(main_.tid);
  if (!state || !mask) {
    return false;
  }
  const auto frames =
      tracee::build_signal_frames(main_.registers, tracee::resumable(main_.registers), *state,
                                  *mask, calls, context().target.addresses.sigreturn);
  // Write the queue without any earlier request: requesting twice would activate twice.
  if (!frames || !write_queue() || !context().memory.write(frames->at, frames->bytes)) {
    return false;
  }
  base::reached(base::Step::kFramesWritten);
  const std::uint64_t end = frames->at.value() + frames->bytes.size();
  if (!context().memory.write_value(
          context().target.addresses.mailbox + offsetof(Mailbox, frames_end), end)) {
    return false;
  }
  base::reached(base::Step::kFramesNoted);
  const bool started = tracee::write_registers(main_.tid, frames->start);
  base::reached(base::Step::kFramesStarted);
  return started;
}

bool Request::carry_out(Mechanism mechanism) {
  const auto& addresses = context().target.addresses;
  switch (mechanism) {
    case Mechanism::kPendingQueue:
      return enqueue();
    case Mechanism::kPendingQueueWakeup:
      if (!enqueue()) {
        return false;
      }
      // The request is committed; a thread that has exited in the meantime needs no wakeup.
      (void)tracee::write_registers(main_.tid, tracee::returning_eintr(main_.registers));
      base::reached(base::Step::kFutexWoken);
      return true;
    case Mechanism::kGilFrames: {
      const std::array<tracee::RemoteCall, 4> calls{{
          {.function = addresses.gilstate_ensure},
          {.function = addresses.run_simple_string, .first_argument = payload().value()},
          // The result of PyGILState_Ensure: PyGILState_UNLOCKED, since the GIL was released.
          {.function = addresses.gilstate_release, .first_argument = 1},
          {.function = addresses.sem_post, .first_argument = done().value()},
      }};
      return run_frames(calls);
    }
    case Mechanism::kPendingCallFrames: {
      const std::array<tracee::RemoteCall, 2> calls{{
          {.function = addresses.add_pending_call,
           .first_argument = addresses.run_simple_string.value(),
           .second_argument = payload().value()},
          {.function = addresses.add_pending_call,
           .first_argument = addresses.sem_post.value(),
           .second_argument = done().value()},
      }};
      return run_frames(calls);
    }
    case Mechanism::kNone:
    case Mechanism::kStore:
      break;
  }
  return false;
}

std::string Request::whereabouts() const {
  if (main_.job_control) {
    return "it is stopped by job control (SIGSTOP or Ctrl-Z)";
  }
  if (const auto frozen = procfs::read_frozen(context().target.id.pid)) {
    return fmt::format("it is frozen by its cgroup {} (cgroup.freeze)", base::printable(*frozen));
  }
  const auto where = fmt::format("its main thread (tid {})", main_.tid.value());
  const auto gil = main_.holds_gil ? " with the GIL held" : "";
  if (main_.call.kind != tracee::Interrupted::kNo) {
    return fmt::format("{} waits in {}{}", where, tracee::system_call_name(main_.call.number), gil);
  }
  const auto* code = procfs::find_mapping(context().maps, main_.registers.instruction_pointer());
  return fmt::format("{} runs in {}{}", where,
                     code == nullptr ? "unknown code" : base::printable(code->path), gil);
}

}  // namespace

std::variant<Requested, NotNow, Refusal> request_activation(const AttachedTarget& attached,
                                                            const Owner& owner,
                                                            std::optional<Mechanism> only) {
  auto looked = look_at_queue(attached);
  if (auto* refusal = std::get_if<Refusal>(&looked)) {
    return std::move(*refusal);
  }
  if (auto* not_now = std::get_if<NotNow>(&looked)) {
    return std::move(*not_now);
  }
  auto& [main, queue] = std::get<QueueAndThread>(looked);
  const auto& context = attached.context();
  const auto address = context.target.addresses.mailbox;
  Mailbox mailbox = attached.mailbox().value_or(Mailbox{});
  SeccompVerdict seccomp;
  if (context.seccomp) {
    seccomp = judge_seccomp(main.tid);
    if (seccomp.refusal) {
      return *seccomp.refusal;
    }
  }
  const auto calls = queued_calls(context.target);
  auto earlier = progress(mailbox, queue, main, calls);
  if (earlier == Progress::kQueued && take_back(queue, calls)) {
    earlier = Progress::kNone;
  }
  if (earlier == Progress::kNone && queue.free_slots() < 2) {
    return NotNow{"the queue of pending calls is full"};
  }

  mailbox.magic = kMailboxMagic;
  mailbox.process_pid = context.target.inner_pid.value();
  mailbox.process_start = context.target.id.start_time;
  mailbox.owner_pid = owner.session.pid.value();
  mailbox.owner_start = owner.session.start_time;
  mailbox.owner_namespace = owner.pid_namespace;
  mailbox.evaluator = 0;
  mailbox.outcome = kNothingSpecial;
  std::copy(kPayload.begin(), kPayload.end(), mailbox.payload.begin());
  if (earlier == Progress::kNone) {
    // A request that was never committed will never run.
    mailbox.requested = mailbox.done + 1;
    mailbox.frames_end = 0;
  }
  Request request{attached, only, main, std::move(queue), seccomp.sigreturn};
  Requested result{.mechanism = request.choose(),
                   .serial = mailbox.requested,
                   .main_thread = main.tid,
                   .filters_unread = seccomp.unread,
                   .waiting_for = request.whereabouts()};
  // For a queued payload that fails before its `try`, the queue raises the error in the program;
  // signal frames ignore the payload's result.
  if (earlier == Progress::kNone && result.mechanism != Mechanism::kGilFrames && !only &&
      context.view.observed(context.target.addresses.main_interpreter, main.state)) {
    return NotNow{
        "it has audit hooks, a trace or a profile function, which may raise inside the activation: "
        "it is activated only while its main thread waits in a system call other than a lock's"};
  }
  if (!context.memory.write_value(address, mailbox)) {
    return Refusal{.reason = Reason::kActivationFailed,
                   .found = "the mailbox cannot be written",
                   .remedy = "please report this build"};
  }
  base::reached(base::Step::kRequestWritten);
  if (earlier != Progress::kNone) {
    // Its calls cannot be removed and need not be: they may only need a wakeup.
    if (result.mechanism == Mechanism::kPendingQueueWakeup && earlier == Progress::kQueued) {
      (void)tracee::write_registers(main.tid, tracee::returning_eintr(main.registers));
    } else {
      result.mechanism = Mechanism::kPendingQueue;
    }
    return result;
  }
  if (!request.carry_out(result.mechanism)) {
    return NotNow{fmt::format("the request could not be made by {}", name(result.mechanism))};
  }
  return result;
}

}  // namespace pyinject::python
