// A target whose threads all stand still: what may be read and stored then. Lives only as long as a
// stop, on the thread that made it.
#pragma once

#include "procfs/maps.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/python/injector.hpp"
#include "pyinject/python/target.hpp"
#include "python/activate/libc_caller.hpp"
#include "python/activate/pending_queue.hpp"
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

// What every step of an attach needs to know of its target; made before the stop, to keep that
// short.
struct AttachContext {
  const Target& target;
  tracee::TraceeMemory memory;
  RuntimeLayout layout;
  RuntimeView view;
  std::vector<procfs::Mapping> maps;
  bool seccomp = false;              // filters are installed
  std::unique_ptr<LibcCaller> libc;  // only where an activation may have to be asked for

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

// The main thread: the one that runs pending calls. Not always the process's first one (embedding).
struct MainThread {
  base::Tid tid;
  base::RemoteAddress state;  // its PyThreadState
  tracee::Registers registers;
  tracee::InterruptedCall call;
  bool holds_gil = false;
  bool job_control = false;
};

// Its functions throw base::SystemError when the target's memory cannot be read.
class AttachedTarget {
 public:
  AttachedTarget(const AttachContext& context, const tracee::StoppedProcess& process)
      : context_{context}, process_{process} {}

  // The process is still the one that was detected and its interpreter is alive.
  [[nodiscard]] std::optional<Refusal> still_the_same() const;
  [[nodiscard]] std::optional<Mailbox> mailbox() const;
  [[nodiscard]] base::RemoteAddress evaluator() const;
  // nullopt: a foreign evaluator.
  [[nodiscard]] std::optional<TrampolineState> state() const;

  // The store that switches: EVALUATOR, or null for off. Owner first when switching on, last when
  // switching off: killed in between, the target is off and a later session sees why.
  [[nodiscard]] bool switch_on(Mailbox mailbox, const Owner& owner) const;
  [[nodiscard]] bool switch_off(Mailbox mailbox) const;

  [[nodiscard]] std::optional<MainThread> main_thread() const;
  [[nodiscard]] std::variant<PendingQueue, std::string> queue() const;
  // In one write: a half-written queue would stay skewed for ever.
  [[nodiscard]] bool write_queue(const PendingQueue& queue) const;
  // True when nobody is inside Py_AddPendingCall or taking a call out.
  [[nodiscard]] bool queue_unlocked(const PendingQueue& queue) const;

  [[nodiscard]] const AttachContext& context() const { return context_; }
  [[nodiscard]] const tracee::StoppedProcess& process() const { return process_; }

 private:
  const AttachContext& context_;
  const tracee::StoppedProcess& process_;
};

// Stops the target, runs WORK and lets it go, on a thread of its own. A stop that takes too long is
// given up and tried again until DEADLINE: a thread in state D must not keep the others standing.
// WORK returns false to be tried again with a new stop. STOPPED is the length of the last stop.
[[nodiscard]] std::optional<Refusal> with_stopped_target(
    const AttachContext& context, base::Deadline deadline, std::chrono::nanoseconds& stopped,
    const std::function<bool(const AttachedTarget&)>& work);

// A refusal when a session other than OWN owns the target and still runs, or may run. Throws
// base::Error when it cannot look at the processes.
[[nodiscard]] std::optional<Refusal> refuse_others_session(const Target& target,
                                                           const Mailbox& mailbox,
                                                           base::ProcessId own);

// Throws base::SystemError (of errno) when a write of the target's memory has failed.
void require_written(bool written);

// True: it is proved that the process has ended, is ending, or runs another program.
[[nodiscard]] bool is_no_more(const Target& target);
// True: it is proved that the interpreter is no more, or that the process is.
[[nodiscard]] bool has_no_interpreter(const AttachContext& context);

// The process has ended meanwhile.
[[nodiscard]] Refusal exited();

}  // namespace pyinject::python
