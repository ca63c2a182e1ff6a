// Switches the trampoline of one target on and off.
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

// By which rung of the ladder (docs/architecture.md) it was done.
enum class Mechanism {
  kNone,                // nothing was to be done
  kStore,               // the 8-byte store into eval_frame, all threads stopped
  kPendingQueue,        // two entries in the interpreter's pending-call queue
  kPendingQueueWakeup,  // the same, and the main thread's futex wait returns EINTR
  kPendingCallFrames,   // signal frames that call Py_AddPendingCall
  kGilFrames,           // signal frames that take the GIL and run the payload
  kObserved,            // it is read from outside: nothing was done to it
};
[[nodiscard]] std::string_view name(Mechanism mechanism);  // "store", "pending queue", ...

// Who switches it off again, written into the target so that other sessions can see it.
struct Owner {
  base::ProcessId session;  // the tool's own; {0, 0}: nobody, `activate` leaves it on
  std::uint32_t pid_namespace = own_pid_namespace();
};

struct ActivateOptions {
  Owner owner;
  std::chrono::nanoseconds deadline = std::chrono::seconds{5};
  // For tests of one rung: use this mechanism or fail with kActivationFailed.
  std::optional<Mechanism> only = {};
  // Set by another thread: the deadline is now. Null: never.
  const std::atomic<bool>* cancelled = nullptr;
};

struct Activation {
  Mechanism mechanism = Mechanism::kNone;
  TrampolineState before = TrampolineState::kOff;  // what deactivation has to restore
  std::chrono::nanoseconds stopped{};       // the longest that threads stood still: stop to detach
  std::chrono::nanoseconds until_active{};  // from the call to the confirmed effect
  base::UniqueFd map;                       // the perf map that the target writes, open for reading
  std::vector<std::string> notes;           // what else was done and the user should know
};

struct DeactivateOptions {
  std::chrono::nanoseconds deadline = std::chrono::seconds{5};
  // Only what this session has switched on or asked for; unset: whosoever's that runs no more.
  std::optional<base::ProcessId> only_of = {};
};

struct Deactivation {
  Mechanism mechanism = Mechanism::kNone;  // kStore: it was on
  std::chrono::nanoseconds stopped{};
  std::string note = {};  // what the user should know; mostly empty
};

// Largest stack use of the target's threads, for the dump size of --call-graph dwarf.
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

  // Makes whatever the functions below need, so that no shortage of threads comes between switching
  // on and switching off. To be called before the first of them, also after a fork. Throws
  // base::SystemError.
  virtual void prepare() {}

  // The functions below throw base::Error when they cannot tell how it is with TARGET, which then
  // may be on. Reason::kExited is returned only when it is proved that TARGET has ended or runs
  // another program.
  //
  // Switches on. Idempotent: a target that is on stays on and `before` says so. On a Refusal
  // nothing is left changed, and a request that met its deadline can never run later.
  [[nodiscard]] virtual std::variant<Activation, Refusal> activate(
      const Target& target, const ActivateOptions& options) = 0;

  // Switches off what is on by us, and takes back a request that has not run yet: afterwards it
  // cannot run any more. A target that is on by itself keeps it. A vanished process is
  // Reason::kExited, a living other session's target Reason::kOtherSession.
  [[nodiscard]] virtual std::variant<Deactivation, Refusal> deactivate(
      const Target& target, const DeactivateOptions& options) = 0;

  // Of a release that unmaps trampolines at its exit while daemon threads may be inside: those that
  // TARGET has made since it was activated are kept mapped. Nothing is stopped when there are none.
  [[nodiscard]] virtual std::optional<Refusal> keep_trampolines(
      const Target& /*target*/, std::chrono::nanoseconds /*deadline*/) {
    return std::nullopt;
  }

  // One short stop that reads the threads' stack pointers.
  [[nodiscard]] virtual std::variant<StackUse, Refusal> stack_use(
      const Target& target, std::chrono::nanoseconds deadline) = 0;
};

[[nodiscard]] std::unique_ptr<Injector> make_injector();

}  // namespace pyinject::python
