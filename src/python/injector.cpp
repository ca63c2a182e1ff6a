#include "pyinject/python/injector.hpp"

#include "activation.hpp"
#include "attached_target.hpp"
#include "deactivation.hpp"
#include "pyinject/procfs/maps.hpp"
#include "pyinject/procfs/status.hpp"
#include "pyinject/tracee/signal_frames.hpp"

#include <memory>
#include <thread>
#include <utility>

namespace pyinject::python {

namespace {

using base::Deadline;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// What a stop needs, read anew: seconds may have passed since the detection.
std::variant<std::unique_ptr<Workpiece>, Refusal> prepare(const Target& target) {
  std::vector<std::byte> head(kDebugOffsetsBytes);
  const tracee::ProcessMemory memory{target.id.pid};
  auto maps = procfs::read_maps(target.id.pid);
  if (!maps || !memory.read(target.addresses.runtime, head)) {
    return refuse_gone();
  }
  auto layout = parse_layout(target.version, head);
  if (const auto* wrong = std::get_if<std::string>(&layout)) {
    return Refusal{.reason = Reason::kLayoutMismatch, .found = *wrong, .remedy = ""};
  }
  return std::make_unique<Workpiece>(target, std::get<RuntimeLayout>(layout), std::move(*maps));
}

// A target that ends meanwhile looks like much else: its threads have gone before its memory, and
// then nothing of it can be read any more.
Refusal unless_gone(const Workpiece& piece, Refusal refusal) {
  if (refusal.reason == Reason::kExited || refusal.reason == Reason::kNoPermission) {
    return refusal;
  }
  if (refusal.reason == Reason::kActivationFailed &&
      (piece.view.finalizing() || !piece.view.initialized())) {
    // What the request asked for failed because of that.
    return {
        .reason = Reason::kFinalizing, .found = "its interpreter is shutting down", .remedy = {}};
  }
  const bool may_be_ending = refusal.reason == Reason::kMainThreadGone;
  const auto grace = Deadline::after(milliseconds{may_be_ending ? 200 : 0});
  while (piece.view.main_interpreter()) {
    if (grace.expired()) {
      return refusal;
    }
    std::this_thread::sleep_for(milliseconds{1});
  }
  return refuse_gone();
}

class ProcessInjector : public Injector {
 public:
  std::variant<Activation, Refusal> activate(const Target& target,
                                             const ActivateOptions& options) override;
  std::variant<Deactivation, Refusal> deactivate(const Target& target,
                                                 const DeactivateOptions& options) override;
  std::variant<StackUse, Refusal> stack_use(const Target& target, nanoseconds deadline) override;
};

std::variant<Activation, Refusal> ProcessInjector::activate(const Target& target,
                                                            const ActivateOptions& options) {
  auto prepared = prepare(target);
  if (auto* refusal = std::get_if<Refusal>(&prepared)) {
    return std::move(*refusal);
  }
  auto& piece = *std::get<std::unique_ptr<Workpiece>>(prepared);
  const auto status = procfs::read_status(target.id.pid);
  const auto mailbox = read_mailbox(piece.memory, target.addresses.mailbox);
  if (!mailbox || mailbox->evaluator == 0) {
    tracee::prepare_signal_frames();
    piece.libc = LibcCaller::open(target.id.pid, piece.maps, target.addresses.sem_post);
  }
  piece.seccomp = status && status->seccomp != procfs::SeccompMode::kNone;
  auto result = Activate{piece, options}.run();
  if (auto* refusal = std::get_if<Refusal>(&result)) {
    return unless_gone(piece, std::move(*refusal));
  }
  return result;
}

std::variant<Deactivation, Refusal> ProcessInjector::deactivate(const Target& target,
                                                                const DeactivateOptions& options) {
  auto prepared = prepare(target);
  if (auto* failed = std::get_if<Refusal>(&prepared)) {
    return std::move(*failed);
  }
  const auto& piece = *std::get<std::unique_ptr<Workpiece>>(prepared);
  auto result = Deactivate{piece, options}.run();
  if (auto* refusal = std::get_if<Refusal>(&result)) {
    return unless_gone(piece, std::move(*refusal));
  }
  return result;
}

std::variant<StackUse, Refusal> ProcessInjector::stack_use(const Target& target,
                                                           nanoseconds deadline) {
  auto prepared = prepare(target);
  if (auto* refusal = std::get_if<Refusal>(&prepared)) {
    return std::move(*refusal);
  }
  const auto& piece = *std::get<std::unique_ptr<Workpiece>>(prepared);
  StackUse most;
  nanoseconds stopped{};
  if (auto failure = with_stopped_target(
          piece, Deadline::after(deadline), stopped, [&](const AttachedTarget& attached) {
            for (const auto& thread : attached.process().threads()) {
              const auto registers = tracee::read_registers(thread.tid);
              if (!registers) {
                continue;
              }
              const auto pointer = registers->stack_pointer();
              const auto* stack = procfs::find_mapping(piece.maps, pointer);
              if (stack == nullptr) {
                continue;
              }
              // Stacks of threads can lie side by side in one mapping; glibc keeps what belongs to
              // a thread at the top of its stack.
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

}  // namespace

std::unique_ptr<Injector> make_injector() { return std::make_unique<ProcessInjector>(); }

}  // namespace pyinject::python
