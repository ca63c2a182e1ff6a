// A child process that outlives this one: a guard.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <functional>

namespace pyinject::base {

struct ChildApart {
  Pid pid;
  UniqueFd socket;  // SOCK_SEQPACKET; the child sees its end when this process has exited
};

// Forks. The child hides from kills by process name and from the terminal, the OOM killer takes it
// last, and it ignores the signals that ask a process to exit. It has no descriptors but standard
// error and its end of the socket, since other processes may wait for their end of file; standard
// input and output are /dev/null. It calls RUN with its end, and exits; RUN must not throw. Throws
// SystemError.
[[nodiscard]] ChildApart start_apart(const std::function<void(int socket)>& run);

}  // namespace pyinject::base
