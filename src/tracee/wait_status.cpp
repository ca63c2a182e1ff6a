#include "tracee/wait_status.hpp"

#include <csignal>

#include <sys/ptrace.h>
#include <sys/wait.h>

namespace pyinject::tracee {

StopKind decode_wait_status(int status) {
  if (!WIFSTOPPED(status)) {
    return Ended{};
  }
  const int event = static_cast<int>(static_cast<unsigned>(status) >> 16U);
  const int signal = WSTOPSIG(status);
  if (event == PTRACE_EVENT_STOP) {
    return signal == SIGTRAP ? StopKind{InterruptStop{}} : StopKind{GroupStop{signal}};
  }
  if (event != 0) {
    return EventStop{event};
  }
  return SignalStop{signal};
}

}  // namespace pyinject::tracee
