#include "python/activate/activation.hpp"

#include "base/fault.hpp"
#include "procfs/blocked_task.hpp"
#include "procfs/maps.hpp"
#include "procfs/stat.hpp"
#include "procfs/status.hpp"
#include "pyinject/base/error.hpp"
#include "python/activate/deactivation.hpp"
#include "python/activate/pinned_arenas.hpp"
#include "python/examine/code_arenas.hpp"
#include "python/examine/map_file_check.hpp"
#include "python/layout/version_policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

namespace pyinject::python {

namespace {

using base::Deadline;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

// Extra time after the deadline: for a payload that was already running when it was withdrawn, and
// for the stop that removes the request.
constexpr std::chrono::seconds kGrace{2};
constexpr nanoseconds kLeastForArenas{std::chrono::seconds{1}};

// Size of private anonymous executable mappings, which include the trampolines.
std::uint64_t anonymous_code(base::Pid pid) {
  std::uint64_t size = 0;
  for (const auto& mapping : procfs::read_maps(pid).value_or(std::vector<procfs::Mapping>{})) {
    if (mapping.executable && mapping.inode == 0 && mapping.path.empty()) {
      size += mapping.size();
    }
  }
  return size;
}

}  // namespace

bool Activate::attempt(const AttachedTarget& attached) {
  last_obstacle_.clear();
  const auto state = attached.state();
  if (!state) {
    refusal_ =
        Refusal{.reason = Reason::kForeignEvaluator,
                .found = fmt::format("another frame evaluator (PEP 523) is installed at {:#x}",
                                     attached.evaluator().value()),
                .remedy = "disable whatever installed it"};
    return true;
  }
  return *state == TrampolineState::kOff ? attempt_when_off(attached)
                                         : attempt_when_on(attached, *state);
}

bool Activate::attempt_when_on(const AttachedTarget& attached, TrampolineState state) {
  result_.before = state;
  if (state == TrampolineState::kOnByItself) {
    return true;
  }
  const auto found = attached.mailbox();
  if (!found) {
    // The mailbox existed a moment ago: a process that shares the memory (vfork) may be writing it.
    last_obstacle_ = "its mailbox is being written by another process";
    return false;
  }
  auto mailbox = *found;
  refusal_ = refuse_others_session(context_.target, mailbox, options_.owner.session);
  if (refusal_) {
    return true;
  }
  if (mailbox.owner_pid != 0) {
    // A killed session left it on: this session takes over and switches it off.
    result_.before = TrampolineState::kOff;
  }
  if (mailbox.owner_pid != 0 || mailbox.evaluator == 0) {
    mailbox.evaluator = attached.evaluator().value();
    pin_arenas(context_.maps);
    require_written(attached.switch_on(mailbox, options_.owner));
  }
  return true;
}

bool Activate::attempt_when_off(const AttachedTarget& attached) {
  const auto& target = context_.target;
  const auto mailbox = attached.mailbox();
  const bool own = mailbox && belongs_to(*mailbox, target.inner_pid, target.id.start_time);
  if (own && mailbox->evaluator != 0) {
    // Later activations: CPython's own state is still set up, only the pointer is missing.
    const base::RemoteAddress evaluator{mailbox->evaluator};
    if (evaluator < target.text_begin || evaluator >= target.text_end) {
      refusal_ = Refusal{.reason = Reason::kLayoutMismatch,
                         .found = fmt::format("the saved evaluator {:#x} is not in {}",
                                              evaluator.value(), target.interpreter),
                         .remedy = "its copy was overwritten: restart the process"};
      return true;
    }
    result_.mechanism = Mechanism::kStore;
    pin_arenas(context_.maps);
    require_written(attached.switch_on(*mailbox, options_.owner));
    return true;
  }
  if (mailbox && mailbox->evaluator != 0 && activates_once(target.version)) {
    refusal_ = Refusal{.reason = Reason::kForkedAfterActivation,
                       .found = "it was forked by a process that had been activated before",
                       .remedy = "restart the process"};
    return true;
  }
  const bool ran_in_vain = own && mailbox->requested != 0 && mailbox->done >= mailbox->requested &&
                           mailbox->payload[0] != '\0';
  if (own && (mailbox->outcome == kFailed || ran_in_vain)) {
    refusal_ = Refusal{.reason = Reason::kActivationFailed,
                       .found = "an earlier activation of this process failed",
                       .remedy = "see its stderr; restart the process to try again"};
    return true;
  }
  auto outcome = request_activation(attached, options_.owner, only_);
  if (auto* not_now = std::get_if<NotNow>(&outcome)) {
    last_obstacle_ = not_now->why;
    return false;
  }
  if (auto* refusal = std::get_if<Refusal>(&outcome)) {
    refusal_ = std::move(*refusal);
    return true;
  }
  requested_ = std::get<Requested>(outcome);
  if (requested_->filters_unread) {
    result_.notes.emplace_back(
        "its seccomp filters could not be read (that needs CAP_SYS_ADMIN): a filter that forbids "
        "mmap, mprotect or openat would kill it");
  }
  result_.mechanism = requested_->mechanism;
  return true;
}

bool Activate::ran() const {
  const auto mailbox = read_mailbox(context_.memory, context_.target.addresses.mailbox);
  return mailbox && mailbox->done >= requested_->serial;
}

// Whether the main thread is in a system call. It may have entered one since the request was made
// (or have been about to): then another rung is needed.
bool Activate::main_thread_sleeps() const {
  const auto pid = context_.target.id.pid;
  const auto text = procfs::read_system_call(pid, requested_->main_thread);
  if (!text && errno == EACCES) {  // readable only by its user or with CAP_DAC_READ_SEARCH
    const auto stat = procfs::read_stat(pid, requested_->main_thread);
    return stat && stat->state == 'S';
  }
  return text && procfs::parse_system_call(*text);
}

std::optional<Refusal> Activate::request_again() {
  nanoseconds stopped{};
  auto failure =
      with_stopped_target(context_, deadline_, stopped, [this](const AttachedTarget& attached) {
        if (ran() || attached.state() != TrampolineState::kOff) {
          return true;
        }
        base::reached(base::Step::kSecondLook);
        auto outcome = request_activation(attached, options_.owner, only_);
        if (auto* requested = std::get_if<Requested>(&outcome)) {
          requested_ = std::move(*requested);
          result_.mechanism = requested_->mechanism;
        }
        return true;
      });
  result_.stopped = std::max(result_.stopped, stopped);
  return failure;
}

// The kernel offers no way to wait for a word in another process: poll.
std::optional<Refusal> Activate::wait_for_effect() {
  base::reached(base::Step::kEffectAwaited);
  nanoseconds pause = microseconds{50};
  nanoseconds patience = milliseconds{5};
  auto next_look = Deadline::after(patience);
  while (!ran()) {
    if (has_no_interpreter(context_)) {
      return exited();
    }
    if (deadline_.expired() || cancelled()) {
      return withdraw();
    }
    if (next_look.expired() && main_thread_sleeps()) {
      if (auto failure = request_again()) {
        return failure->reason == Reason::kExited ? failure : withdraw();
      }
      patience = std::min<nanoseconds>(patience * 2, milliseconds{640});
      next_look = Deadline::after(patience);
    }
    std::this_thread::sleep_for(pause);
    pause = std::min<nanoseconds>(pause * 5 / 4, milliseconds{2});
  }
  return std::nullopt;
}

Refusal Activate::withdraw() {
  const DeactivateOptions options{.deadline = kGrace};
  const auto withdrawn = Deactivate{context_, options}.run();
  const auto* failure = std::get_if<Refusal>(&withdrawn);
  const bool open = failure != nullptr && failure->reason == Reason::kDeadline;
  const char* remedy =
      "the request was withdrawn; record --engine bpf needs no safe point, or try again when it "
      "runs Python code";
  if (open) {
    remedy = "the request was withdrawn while it ran: see perf-pyinject status";
  } else if (requested_->filters_unread) {
    remedy =
        "the request was withdrawn; try again when it runs Python code, or with CAP_SYS_ADMIN, "
        "which is needed to read its seccomp filters";
  }
  const auto waited = steady_clock::now() - begin_;
  return {.reason = Reason::kDeadline,
          .found = fmt::format("it reached no safe point within {} ms: {}",
                               std::chrono::duration_cast<milliseconds>(
                                   std::min<nanoseconds>(waited, options_.deadline))
                                   .count(),
                               requested_->waiting_for),
          .remedy = remedy};
}

// Switches off an activation that failed; it is not tried again. Returns REFUSAL, or that the
// target has exited or exec'ed, in which case it has neither arena nor map.
Refusal Activate::undo(const Refusal& refusal) {
  nanoseconds stopped{};
  const auto not_undone = with_stopped_target(
      context_, Deadline::after(std::chrono::seconds{2}), stopped,
      [](const AttachedTarget& attached) {
        auto mailbox = attached.mailbox();
        if (!mailbox) {
          return true;
        }
        mailbox->outcome = kFailed;
        const auto& context = attached.context();
        (void)pin_code_arenas(context, context.maps);
        return attached.state() == TrampolineState::kOnByUs
                   ? attached.switch_off(*mailbox)
                   : context.memory.write_value(context.target.addresses.mailbox, *mailbox);
      });
  return not_undone && has_gone(not_undone->reason) ? *not_undone : refusal;
}

std::optional<Refusal> Activate::verify() {
  const auto& target = context_.target;
  const auto evaluator = context_.memory.read_pointer(target.addresses.eval_frame);
  if (!evaluator) {
    throw base::SystemError{"cannot read its memory", errno};
  }
  if (*evaluator < target.text_begin || *evaluator >= target.text_end) {
    return undo({.reason = Reason::kActivationFailed,
                 .found = "sys.activate_stack_trampoline() raised an exception",
                 .remedy = "check the process for a JIT or another frame evaluator"});
  }
  const auto at = target.addresses.mailbox + offsetof(Mailbox, evaluator);
  (void)context_.memory.write_value(at, evaluator->value());
  base::reached(base::Step::kEvaluatorLearned);
  if (anonymous_code(target.id.pid) <= code_before_) {
    return undo({.reason = Reason::kActivationFailed,
                 .found = "it could not get executable memory for the trampolines",
                 .remedy = "allow it to map executable memory (systemd MemoryDenyWriteExecute=, "
                           "SELinux execmem)"});
  }
  auto map = open_map_of(target.id.pid, target.map_path);
  if (!map.open) {
    return undo({.reason = Reason::kMapNotWritten,
                 .found = fmt::format("it could not open {}", target.map_path),
                 .remedy = "make its /tmp writable for the process"});
  }
  take(std::move(map));
  base::reached(base::Step::kVerified);
  return std::nullopt;
}

void Activate::take(OpenMap map) {
  if (map.problem != 0) {
    result_.notes.push_back(
        fmt::format("neither perf-pyinject nor perf can read its map {} ({}): for complete stacks "
                    "and names run both as root, as its user, or with CAP_DAC_READ_SEARCH",
                    context_.target.map_path, base::errno_text(map.problem)));
  }
  result_.map = std::move(map.file);
}

// Call it with all threads stopped.
void Activate::pin_arenas(const std::vector<procfs::Mapping>& maps) {
  if (const auto problem = pin_code_arenas(context_, maps)) {
    result_.notes.push_back(unpinned_note(*problem));
  }
}

// Call it after a request has taken effect, when the first arena exists. The trampoline is on by
// now, so a failure is only a note: switching off again would make the exit no safer.
void Activate::pin_new_arenas() {
  if (context_.layout.code_arenas == 0) {
    return;
  }
  const auto maps = procfs::read_maps(context_.target.id.pid).value_or(context_.maps);
  nanoseconds stopped{};
  const auto failure = with_stopped_target(
      context_, Deadline::after(std::max(deadline_.remaining(), kLeastForArenas)), stopped,
      [&](const AttachedTarget&) {
        pin_arenas(maps);
        return true;
      });
  result_.stopped = std::max(result_.stopped, stopped);
  if (failure && !has_gone(failure->reason) && failure->reason != Reason::kFinalizing) {
    result_.notes.push_back(unpinned_note(failure->found));
  }
}

std::variant<Activation, Refusal> Activate::run() {
  const auto& target = context_.target;
  if (target.state == TrampolineState::kOff && !open_map_of(target.id.pid, target.map_path).open) {
    if (auto note = move_stale_map(target.id.pid, target.id.start_time, target.map_path)) {
      result_.notes.push_back(std::move(*note));
      base::reached(base::Step::kOldMapMoved);
      const auto status = procfs::read_status(target.id.pid);
      if (auto refusal =
              status ? check_map_file(target.id.pid, *status, 0, target.map_path) : std::nullopt) {
        return *std::move(refusal);
      }
    }
  }
  code_before_ = anonymous_code(context_.target.id.pid);
  if (auto failure = with_stopped_target(
          context_, deadline_, result_.stopped,
          [this](const AttachedTarget& attached) { return attempt(attached); })) {
    if (failure->reason != Reason::kStopDeadline || last_obstacle_.empty()) {
      return *failure;
    }
    // The last stop ran out of time; the ones before it met an obstacle.
  }
  if (refusal_) {
    return *refusal_;
  }
  if (requested_) {
    if (auto refusal = wait_for_effect()) {
      return *refusal;
    }
    base::reached(base::Step::kEffectSeen);
    if (auto refusal = verify()) {
      return *refusal;
    }
    pin_new_arenas();
  } else if (!last_obstacle_.empty()) {
    // The attempts may have revalidated an earlier, withdrawn request.
    const DeactivateOptions options{.deadline = kGrace};
    (void)Deactivate{context_, options}.run();
    return Refusal{.reason = Reason::kDeadline, .found = last_obstacle_, .remedy = "try again"};
  } else {
    take(open_map_of(target.id.pid, target.map_path));
  }
  result_.until_active = steady_clock::now() - begin_;
  return std::move(result_);
}

}  // namespace pyinject::python
