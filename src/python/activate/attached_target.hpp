// A target with all threads stopped, and the reads and writes that need this. Only valid during the
// stop, on the thread that made it.
#pragma once

#include "procfs/maps.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/python/injector.hpp"
#include "pyinject/python/target.hpp"
#include "python/activate/libc_caller.hpp"
#include "python/activate/pending_queue.hpp"
#include "python/activate/while_stopped.hpp"  // IWYU pragma: export
#include "python/examine/mailbox.hpp"
#include "python/layout/runtime_layout.hpp"
#include "python/layout/runtime_view.hpp"
#include "tracee/stopped_process.hpp"
#include "tracee/tracee_memory.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

namespace pyinject::python {

// What every step of an attach needs to know about its target; collected before the stop to keep
// that short.
struct AttachContext {
  const Target& target;
  tracee::TraceeMemory memory;
  RuntimeLayout layout;
  RuntimeView view;
  std::vector<procfs::Mapping> maps;
  bool seccomp = false;              // filters are installed
  std::unique_ptr<LibcCaller> libc;  // only if an activation may have to be requested

  AttachContext(const Target& target_, const RuntimeLayout& layout_,
                std::vector<procfs::Mapping> maps_)
      : target{target_},
        memory{target_.id.pid},
        layout{layout_},
        view{memory, layout, target_.addresses.runtime},
        maps{std::move(maps_)} {}
  AttachContext(const AttachContext&) = delete;
  AttachContext& operator=(const AttachContext&) = delete;
};

// The main thread, which runs pending calls. Not always the first thread of the process
// (embedding).
struct MainThread {
  base::Tid tid;
  base::RemoteAddress state;  // its PyThreadState
  tracee::Registers registers;
  tracee::InterruptedCall call;
  bool holds_gil = false;
  bool job_control = false;
};

// Functions throw base::SystemError if the target's memory cannot be read.
class AttachedTarget {
 public:
  AttachedTarget(const AttachContext& context, const tracee::StoppedProcess& process)
      : context_{context}, process_{process} {}

  // Verifies that this is the process that was detected, with a live interpreter. nullopt: it is.
  [[nodiscard]] std::optional<Refusal> still_the_same() const;
  [[nodiscard]] std::optional<Mailbox> mailbox() const;
  [[nodiscard]] base::RemoteAddress evaluator() const;
  // nullopt: a foreign evaluator.
  [[nodiscard]] std::optional<TrampolineState> state() const;

  // Stores into eval_frame: the evaluator to switch on, null to switch off. Writes the owner first
  // when switching on and last when switching off: if this tool is killed in between, the target is
  // off and a later session sees why.
  [[nodiscard]] bool switch_on(Mailbox mailbox, const Owner& owner) const;
  [[nodiscard]] bool switch_off(Mailbox mailbox) const;

  [[nodiscard]] std::optional<MainThread> main_thread() const;
  [[nodiscard]] std::variant<PendingQueue, std::string> queue() const;
  // A single write: a half-written queue would stay corrupt forever.
  [[nodiscard]] bool write_queue(const PendingQueue& queue) const;
  // True if no thread is inside Py_AddPendingCall or removing a call.
  [[nodiscard]] bool queue_unlocked(const PendingQueue& queue) const;

  [[nodiscard]] const AttachContext& context() const { return context_; }
  [[nodiscard]] const tracee::StoppedProcess& process() const { return process_; }

 private:
  const AttachContext& context_;
  const tracee::StoppedProcess& process_;
};

// while_stopped() for a target. If WORK returns false, it is retried with a new stop.
[[nodiscard]] std::optional<Refusal> with_stopped_target(
    const AttachContext& context, base::Deadline deadline, std::chrono::nanoseconds& stopped,
    const std::function<bool(const AttachedTarget&)>& work);

// Refuses if a session other than OWN owns the target and still runs, or may still run. Throws
// base::Error if it cannot examine the processes.
[[nodiscard]] std::optional<Refusal> refuse_others_session(const Target& target,
                                                           const Mailbox& mailbox,
                                                           base::ProcessId own);

// Throws base::SystemError (with errno) if WRITTEN is false.
void require_written(bool written);

// True: the process has provably exited, is exiting, or has exec'ed.
[[nodiscard]] bool is_no_more(const Target& target);
// True: the interpreter or the process is provably gone.
[[nodiscard]] bool has_no_interpreter(const AttachContext& context);

}  // namespace pyinject::python
