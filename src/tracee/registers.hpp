// The registers of a stopped thread. Only registers_*.cpp know their names.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/base/remote_address.hpp"

#include <array>
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
  // The value of pthread_self() in this thread: with glibc and musl the thread pointer.
  [[nodiscard]] std::uint64_t thread_pointer() const;
};

// THREAD must be ptrace-stopped by the calling thread. nullopt: it has exited.
[[nodiscard]] std::optional<Registers> read_registers(base::Tid thread);
[[nodiscard]] bool write_registers(base::Tid thread, const Registers& registers);

// The extended state (x87, SSE, AVX, AVX-512, AMX ...) in the XSAVE standard format, as returned by
// PTRACE_GETREGSET NT_X86_XSTATE. nullopt: it has exited.
[[nodiscard]] std::optional<std::vector<std::byte>> read_extended_state(base::Tid thread);

// The thread's signal mask; if a system call (ppoll, epoll_pwait, sigsuspend) has set a temporary
// one, the mask to be restored: kernel ptrace_request(), PTRACE_GETSIGMASK.
[[nodiscard]] std::optional<std::uint64_t> read_signal_mask(base::Tid thread);

// True while the thread is in a restartable sequence (rseq(2)), when its registers must not be
// replaced: the kernel would then not restart the sequence.
[[nodiscard]] bool in_restartable_sequence(base::Tid thread, const Registers& registers);

// Whether the processor keeps a second copy of return addresses, so that forged frames cannot
// return (kernel 6.6, CET).
[[nodiscard]] bool has_shadow_stack(base::Tid thread);

// How a system call interrupted by a stop would continue.
enum class Interrupted {
  kNo,        // running in user space, or in a call that has finished
  kRestarts,  // the kernel would restart it transparently
  kTimed,     // continued by restart_syscall(2): a sigreturn turns that into EINTR
  kFails,     // already returns EINTR, as after any stop: epoll_wait, sigtimedwait
};
struct InterruptedCall {
  Interrupted kind = Interrupted::kNo;
  std::int64_t number = -1;  // of the system call
  bool futex = false;
  // It was interrupted before and is being continued by restart_syscall(2): the original call (a
  // timed futex, poll, nanosleep ...) is unknown.
  bool restarted = false;
};
[[nodiscard]] InterruptedCall interrupted_call(const Registers& registers);

// The arguments of the system call that was interrupted.
[[nodiscard]] std::array<std::uint64_t, 6> call_arguments(const Registers& registers);

// The general registers by their DWARF numbers, the last one is the instruction pointer: System V
// ABI x86-64 figure 3.36.
[[nodiscard]] std::array<std::uint64_t, 17> in_dwarf_order(const Registers& registers);

// REGISTERS modified to continue through rt_sigreturn(2), which does not restart system calls:
// kRestarts repeats its instruction, kTimed returns EINTR.
[[nodiscard]] Registers resumable(const Registers& registers);

// REGISTERS with the interrupted system call returning EINTR.
[[nodiscard]] Registers returning_eintr(const Registers& registers);

// A printable name of a system call number, for messages: "futex", "read", "system call 999".
[[nodiscard]] const char* system_call_name(std::int64_t number);

}  // namespace pyinject::tracee
