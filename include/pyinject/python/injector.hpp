// Switches the trampoline of a target on and off.
//
// For example:
//   const auto injector = python::make_injector();
//   injector->prepare();
//   const auto result = injector->activate(target, {.owner = targets::this_session()});
//   if (std::holds_alternative<python::Activation>(result)) {
//     (void)injector->deactivate(target, {});
//   }
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "pyinject/python/reason.hpp"
#include "pyinject/python/target.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace pyinject::python {

// The rung of the ladder (docs/architecture.md) that did the work.
enum class Mechanism {
  kNone,                // nothing had to be done
  kStore,               // the 8-byte store into eval_frame, all threads stopped
  kPendingQueue,        // two entries in the interpreter's pending-call queue
  kPendingQueueWakeup,  // the same, and the main thread's futex wait returns EINTR
  kPendingCallFrames,   // signal frames that call Py_AddPendingCall
  kGilFrames,           // signal frames that take the GIL and run the payload
};
[[nodiscard]] std::string_view name(Mechanism mechanism);  // "store", "pending queue", ...

// The session that switches the target off again. Written into the target so that other sessions
// can see it.
struct Owner {
  base::ProcessId session;  // this tool's process; {0, 0}: none, `activate` leaves it on
  std::uint32_t pid_namespace = own_pid_namespace();
};

struct ActivateOptions {
  Owner owner;
  std::chrono::nanoseconds deadline = std::chrono::seconds{5};
  // Set by another thread: give up as if the deadline had passed. Null: never.
  const std::atomic<bool>* cancelled = nullptr;
};

struct Activation {
  Mechanism mechanism = Mechanism::kNone;
  TrampolineState before = TrampolineState::kOff;  // the state that deactivation has to restore
  std::chrono::nanoseconds stopped{};  // longest time that threads were stopped: stop to detach
  std::chrono::nanoseconds until_active{};  // from the call to the confirmed effect
  base::UniqueFd map;                       // the perf map that the target writes, open for reading
  std::vector<std::string> notes;           // side effects that the user should know about
};

struct DeactivateOptions {
  std::chrono::nanoseconds deadline = std::chrono::seconds{5};
  // Only what this session switched on or requested; unset: that of any session that has exited.
  std::optional<base::ProcessId> only_of = {};
};

struct Deactivation {
  Mechanism mechanism = Mechanism::kNone;  // kStore: the trampoline was on
  std::chrono::nanoseconds stopped{};
  std::string note = {};        // what the user should know; usually empty
  bool off_by_program = false;  // the program has switched off what the session had switched on
};

// Largest stack use among the target's threads, for the dump size of --call-graph dwarf.
struct StackUse {
  std::uint64_t bytes = 0;
  base::Tid thread;
};

class Injector {
 public:
  virtual ~Injector() = default;
  Injector() = default;
  Injector(const Injector&) = delete;
  Injector& operator=(const Injector&) = delete;

  // Allocates everything the functions below need, so that a shortage of threads cannot occur
  // between switching on and switching off. Call it before the first of them, and again after a
  // fork. Throws base::SystemError.
  virtual void prepare() {}

  // The functions below throw base::Error if they cannot determine the state of TARGET, which may
  // then be on. They return Reason::kExited only if TARGET has provably exited or exec'ed.
  //
  // Switches on. Idempotent: a target that is already on stays on, and `before` says so. On a
  // Refusal nothing is left changed, and a request that missed its deadline can never run later.
  [[nodiscard]] virtual std::variant<Activation, Refusal> activate(
      const Target& target, const ActivateOptions& options) = 0;

  // Switches off what is on by us and cancels a request that has not run yet: it cannot run
  // afterwards. A target that is on by itself stays on. Returns Reason::kExited for a process that
  // has exited, and Reason::kOtherSession for the target of another session that still runs.
  [[nodiscard]] virtual std::variant<Deactivation, Refusal> deactivate(
      const Target& target, const DeactivateOptions& options) = 0;

  // For releases that unmap trampolines at exit while daemon threads may be inside: keeps the
  // trampolines mapped that TARGET has made since its activation. Stops nothing if there are none.
  // nullopt: success.
  [[nodiscard]] virtual std::optional<Refusal> keep_trampolines(
      const Target& /*target*/, std::chrono::nanoseconds /*deadline*/) {
    return std::nullopt;
  }

  // Reads the stack pointers of all threads in one short stop.
  [[nodiscard]] virtual std::variant<StackUse, Refusal> stack_use(
      const Target& target, std::chrono::nanoseconds deadline) = 0;
};

[[nodiscard]] std::unique_ptr<Injector> make_injector();

}  // namespace pyinject::python
