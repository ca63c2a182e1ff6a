#include "pyinject/python/injector.hpp"

#include "procfs/maps.hpp"
#include "procfs/own_rights.hpp"
#include "procfs/status.hpp"
#include "pyinject/base/error.hpp"
#include "python/activate/activation.hpp"
#include "python/activate/attached_target.hpp"
#include "python/activate/deactivation.hpp"
#include "python/activate/pinned_arenas.hpp"
#include "python/activate/single_rung.hpp"
#include "python/examine/code_arenas.hpp"
#include "python/layout/version_policy.hpp"
#include "tracee/signal_frames.hpp"
#include "tracee/tracer_thread.hpp"

#include <cerrno>
#include <memory>
#include <thread>
#include <utility>

namespace pyinject::python {

namespace {

using base::Deadline;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// How long to wait for a process to exit after its memory has vanished. An exit is uninterruptible
// by then, so is_no_more() usually sees it immediately.
constexpr milliseconds kEnds{200};

bool ends(const Target& target, nanoseconds grace) {
  const auto deadline = Deadline::after(grace);
  while (!is_no_more(target)) {
    if (deadline.expired()) {
      return false;
    }
    std::this_thread::sleep_for(milliseconds{1});
  }
  return true;
}

// Runs WORK, which fails in many ways if the target exits meanwhile. A failure on a target that has
// not exited is passed on: it says nothing about the target.
template <typename Work>
auto unless_ended(const Target& target, const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const base::Error&) {
    if (!ends(target, kEnds)) {
      throw;
    }
    return exited();
  }
}

// Reads again what a stop needs: seconds may have passed since the detection.
std::variant<RuntimeLayout, Refusal> layout_of(const Target& target) {
  std::vector<std::byte> head(kDebugOffsetsBytes);
  const memory::ProcessMemory memory{target.id.pid};
  if (!memory.read(target.addresses.runtime, head)) {
    throw base::SystemError{"cannot read its memory", errno};
  }
  auto layout = parse_layout(target.version, head);
  if (const auto* wrong = std::get_if<std::string>(&layout)) {
    return Refusal{.reason = Reason::kLayoutMismatch, .found = *wrong, .remedy = ""};
  }
  return std::get<RuntimeLayout>(layout);
}

std::variant<std::unique_ptr<AttachContext>, Refusal> look_again(const Target& target) {
  auto maps = procfs::read_maps(target.id.pid);
  if (!maps) {
    const int error = errno;
    if (error == EACCES || error == EPERM) {
      return Refusal{.reason = Reason::kNoPermission,
                     .found = "cannot read its /proc/PID/maps: " + base::errno_text(error),
                     .remedy = procfs::how_to_get(procfs::Capability::kSysPtrace)};
    }
    return exited();
  }
  auto layout = layout_of(target);
  if (auto* refusal = std::get_if<Refusal>(&layout)) {
    return std::move(*refusal);
  }
  return std::make_unique<AttachContext>(target, std::get<RuntimeLayout>(layout), std::move(*maps));
}

// Returns the exit as the reason if the target is exiting, which resembles other failures: its
// threads vanish before its memory, which then becomes unreadable.
Refusal prefer_exited(const AttachContext& context, Refusal refusal) {
  if (refusal.reason == Reason::kExited || refusal.reason == Reason::kNoPermission) {
    return refusal;
  }
  if (refusal.reason == Reason::kActivationFailed &&
      (context.view.finalizing() || !context.view.initialized())) {
    // The shutdown made the request fail.
    return {
        .reason = Reason::kFinalizing, .found = "its interpreter is shutting down", .remedy = {}};
  }
  const bool may_be_ending = refusal.reason == Reason::kMainThreadGone;
  const auto grace = Deadline::after(milliseconds{may_be_ending ? 200 : 0});
  while (!has_no_interpreter(context)) {
    if (grace.expired()) {
      return refusal;
    }
    std::this_thread::sleep_for(milliseconds{1});
  }
  return exited();
}

std::variant<Activation, Refusal> activate_target(const Target& target,
                                                  const ActivateOptions& options,
                                                  std::optional<Mechanism> only) {
  auto prepared = look_again(target);
  if (auto* refusal = std::get_if<Refusal>(&prepared)) {
    return std::move(*refusal);
  }
  auto& context = *std::get<std::unique_ptr<AttachContext>>(prepared);
  const auto status = procfs::read_status(target.id.pid);
  const auto mailbox = read_mailbox(context.memory, target.addresses.mailbox);
  if (!mailbox || mailbox->evaluator == 0) {
    tracee::prepare_signal_frames();
    context.libc = LibcCaller::open(target.id.pid, context.maps, target.addresses.sem_post);
  }
  context.seccomp = status && status->seccomp != procfs::SeccompMode::kNone;
  auto result = Activate{context, options, only}.run();
  if (auto* refusal = std::get_if<Refusal>(&result)) {
    return prefer_exited(context, std::move(*refusal));
  }
  return result;
}

std::variant<Deactivation, Refusal> deactivate_target(const Target& target,
                                                      const DeactivateOptions& options) {
  auto prepared = look_again(target);
  if (auto* failed = std::get_if<Refusal>(&prepared)) {
    return std::move(*failed);
  }
  const auto& context = *std::get<std::unique_ptr<AttachContext>>(prepared);
  auto result = Deactivate{context, options}.run();
  if (auto* refusal = std::get_if<Refusal>(&result)) {
    return prefer_exited(context, std::move(*refusal));
  }
  return result;
}

std::optional<Refusal> keep_trampolines_of(const Target& target, nanoseconds deadline) {
  if (!unmaps_used_arenas(target.version)) {
    return std::nullopt;
  }
  const auto layout = layout_of(target);
  if (const auto* refusal = std::get_if<Refusal>(&layout)) {
    return *refusal;
  }
  const memory::ProcessMemory memory{target.id.pid};
  const auto arenas = target.addresses.runtime + std::get<RuntimeLayout>(layout).code_arenas;
  if (!has_new_arena(memory, arenas).value_or(false)) {
    return std::nullopt;
  }
  auto prepared = look_again(target);
  if (auto* refusal = std::get_if<Refusal>(&prepared)) {
    return std::move(*refusal);
  }
  const auto& context = *std::get<std::unique_ptr<AttachContext>>(prepared);
  std::optional<std::string> problem;
  nanoseconds stopped{};
  auto failure = with_stopped_target(context, Deadline::after(deadline), stopped,
                                     [&](const AttachedTarget& attached) {
                                       if (attached.state() == TrampolineState::kOnByUs) {
                                         problem = pin_code_arenas(context, context.maps);
                                       }
                                       return true;
                                     });
  if (problem) {
    return Refusal{
        .reason = Reason::kLayoutMismatch, .found = unpinned_note(*problem), .remedy = ""};
  }
  return failure;
}

std::variant<StackUse, Refusal> stack_use_of(const Target& target, nanoseconds deadline) {
  auto prepared = look_again(target);
  if (auto* refusal = std::get_if<Refusal>(&prepared)) {
    return std::move(*refusal);
  }
  const auto& context = *std::get<std::unique_ptr<AttachContext>>(prepared);
  StackUse most;
  nanoseconds stopped{};
  if (auto failure = with_stopped_target(
          context, Deadline::after(deadline), stopped, [&](const AttachedTarget& attached) {
            for (const auto& thread : attached.process().threads()) {
              const auto registers = tracee::read_registers(thread.tid);
              if (!registers) {
                continue;
              }
              const auto pointer = registers->stack_pointer();
              const auto* stack = procfs::find_mapping(context.maps, pointer);
              if (stack == nullptr) {
                continue;
              }
              // Stacks of threads can be adjacent in one mapping; glibc stores a thread's own data
              // at the top of its stack.
              const base::RemoteAddress own{registers->thread_pointer()};
              const bool above = own > pointer && own < stack->end;
              const auto use = (above ? own : stack->end).value() - pointer.value();
              if (use > most.bytes) {
                most = {.bytes = use, .thread = thread.tid};
              }
            }
            return true;
          })) {
    return *failure;
  }
  return most;
}

class ProcessInjector : public Injector {
 public:
  // ONLY: the rung that activations must use; nullopt: any.
  explicit ProcessInjector(std::optional<Mechanism> only) : only_{only} {}

  std::variant<Activation, Refusal> activate(const Target& target,
                                             const ActivateOptions& options) override {
    return unless_ended(target, [&] { return activate_target(target, options, only_); });
  }
  std::variant<Deactivation, Refusal> deactivate(const Target& target,
                                                 const DeactivateOptions& options) override {
    return unless_ended(target, [&] { return deactivate_target(target, options); });
  }
  std::optional<Refusal> keep_trampolines(const Target& target, nanoseconds deadline) override {
    return unless_ended(target, [&] { return keep_trampolines_of(target, deadline); });
  }
  std::variant<StackUse, Refusal> stack_use(const Target& target, nanoseconds deadline) override {
    return unless_ended(target, [&] { return stack_use_of(target, deadline); });
  }
  void prepare() override { tracee::prepare_tracer_threads(); }

 private:
  std::optional<Mechanism> only_;
};

}  // namespace

std::unique_ptr<Injector> make_injector() {
  return std::make_unique<ProcessInjector>(std::nullopt);
}

std::unique_ptr<Injector> make_injector_with(Mechanism rung) {
  return std::make_unique<ProcessInjector>(rung);
}

}  // namespace pyinject::python
