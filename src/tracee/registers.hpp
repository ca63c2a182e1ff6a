// The registers of a stopped thread. What they are called is the business of registers_*.cpp.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/base/remote_address.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <sys/user.h>

namespace pyinject::tracee {

struct Registers {
  user_regs_struct general{};

  [[nodiscard]] base::RemoteAddress stack_pointer() const;
  [[nodiscard]] base::RemoteAddress instruction_pointer() const;
  [[nodiscard]] base::RemoteAddress frame_pointer() const;
  // What pthread_self() is in this thread: with glibc and musl the thread pointer itself.
  [[nodiscard]] std::uint64_t thread_pointer() const;
};

// THREAD must be stopped by this thread's ptrace. Empty: it has gone.
[[nodiscard]] std::optional<Registers> read_registers(base::Tid thread);
[[nodiscard]] bool write_registers(base::Tid thread, const Registers& registers);

// The extended state (x87, SSE, AVX, AVX-512, AMX ...) in the XSAVE standard format, as
// PTRACE_GETREGSET NT_X86_XSTATE gives it. Empty: it has gone.
[[nodiscard]] std::optional<std::vector<std::byte>> read_extended_state(base::Tid thread);

// The thread's signal mask; the one to be restored where a system call (ppoll, epoll_pwait,
// sigsuspend) has put in a temporary one: kernel ptrace_request(), PTRACE_GETSIGMASK.
[[nodiscard]] std::optional<std::uint64_t> read_signal_mask(base::Tid thread);

// True while the thread is inside a restartable sequence (rseq(2)), where its registers must not be
// replaced: the kernel would then not restart the sequence.
[[nodiscard]] bool in_restartable_sequence(base::Tid thread, const Registers& registers);

// Return addresses are kept twice: frames that nobody called would not return (kernel 6.6, CET).
[[nodiscard]] bool has_shadow_stack(base::Tid thread);

// How a system call that a stop has interrupted would go on.
enum class Interrupted {
  kNo,        // running in user space, or in a call that has finished
  kRestarts,  // the kernel would run it again, unnoticed by the program
  kTimed,     // continued by restart_syscall(2): a sigreturn turns that into EINTR
  kFails,     // already returns EINTR: epoll_wait, sigtimedwait; any stop does that to them
};
struct InterruptedCall {
  Interrupted kind = Interrupted::kNo;
  std::int64_t number = -1;  // of the system call
  bool futex = false;
  // It was interrupted before and is being continued by restart_syscall(2): which one it is (a
  // timed futex, poll, nanosleep ...) cannot be told any more.
  bool restarted = false;
};
[[nodiscard]] InterruptedCall interrupted_call(const Registers& registers);

// REGISTERS as they must be to go on through rt_sigreturn(2), which does not restart system calls:
// kRestarts is run again from its instruction, kTimed returns EINTR.
[[nodiscard]] Registers resumable(const Registers& registers);

// REGISTERS with the interrupted system call returning EINTR.
[[nodiscard]] Registers returning_eintr(const Registers& registers);

// A printable name of a system call number, for messages: "futex", "read", "system call 999".
[[nodiscard]] const char* system_call_name(std::int64_t number);

}  // namespace pyinject::tracee
