// Names for waitpid(2) results of a seized thread.
#pragma once

#include <variant>

namespace pyinject::tracee {

struct InterruptStop {};  // PTRACE_EVENT_STOP requested by PTRACE_INTERRUPT
struct GroupStop {        // PTRACE_EVENT_STOP of a process stopped by job control
  int signal = 0;
};
struct SignalStop {  // about to be delivered: must be passed on exactly once
  int signal = 0;
};
struct EventStop {  // another PTRACE_EVENT_*
  int event = 0;
};
struct Ended {};  // exited or was killed

using StopKind = std::variant<InterruptStop, GroupStop, SignalStop, EventStop, Ended>;

// STATUS: from waitpid(2) for a thread attached with PTRACE_SEIZE; ptrace(2), "Stopped states".
[[nodiscard]] StopKind decode_wait_status(int status);

}  // namespace pyinject::tracee
