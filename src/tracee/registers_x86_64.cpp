#include "memory/process_memory.hpp"
#include "tracee/registers.hpp"

#include <array>
#include <cerrno>

#include <elf.h>
#include <linux/rseq.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>

namespace pyinject::tracee {

namespace {

// Kernel-internal results of interrupted system calls (include/linux/errno.h). A tracer sees them
// in rax; user space never does.
constexpr std::int64_t kRestartSys = -512;
constexpr std::int64_t kRestartNoIntr = -513;
constexpr std::int64_t kRestartNoHand = -514;
constexpr std::int64_t kRestartBlock = -516;

// The syscall instruction is two bytes long: 0f 05.
constexpr std::uint64_t kSyscallLength = 2;

// Not in glibc 2.36's headers: include/uapi/linux/ptrace.h, since Linux 5.13.
constexpr int kPtraceGetRseqConfiguration = 0x420f;
// Register set of the shadow stack pointer: include/uapi/linux/elf.h, since Linux 6.6.
constexpr int kShadowStackRegister = 0x204;
struct RseqConfiguration {
  std::uint64_t rseq_abi_pointer;
  std::uint32_t rseq_abi_size;
  std::uint32_t signature;
  std::uint32_t flags;
  std::uint32_t pad;
};

long ptrace_request(int request, base::Tid thread, std::uint64_t address, void* data) {
  return ::ptrace(static_cast<__ptrace_request>(request), thread.value(), address, data);
}

}  // namespace

base::RemoteAddress Registers::stack_pointer() const { return base::RemoteAddress{general.rsp}; }
base::RemoteAddress Registers::instruction_pointer() const {
  return base::RemoteAddress{general.rip};
}
base::RemoteAddress Registers::frame_pointer() const { return base::RemoteAddress{general.rbp}; }
std::uint64_t Registers::thread_pointer() const { return general.fs_base; }

std::optional<Registers> read_registers(base::Tid thread) {
  Registers registers;
  iovec area{.iov_base = &registers.general, .iov_len = sizeof registers.general};
  if (ptrace_request(PTRACE_GETREGSET, thread, NT_PRSTATUS, &area) != 0 ||
      area.iov_len != sizeof registers.general) {
    return std::nullopt;
  }
  return registers;
}

bool write_registers(base::Tid thread, const Registers& registers) {
  Registers copy = registers;
  iovec area{.iov_base = &copy.general, .iov_len = sizeof copy.general};
  return ptrace_request(PTRACE_SETREGSET, thread, NT_PRSTATUS, &area) == 0;
}

std::optional<std::vector<std::byte>> read_extended_state(base::Tid thread) {
  // Larger than any XSAVE area (AMX: 11 KiB); the kernel returns the size. If the state did not
  // fit, its end would be missing, which build_signal_frames() detects.
  std::vector<std::byte> state(std::size_t{16} << 10U);
  iovec area{.iov_base = state.data(), .iov_len = state.size()};
  if (ptrace_request(PTRACE_GETREGSET, thread, NT_X86_XSTATE, &area) != 0) {
    return std::nullopt;
  }
  state.resize(area.iov_len);
  return state;
}

std::optional<std::uint64_t> read_signal_mask(base::Tid thread) {
  std::uint64_t mask = 0;
  if (ptrace_request(PTRACE_GETSIGMASK, thread, sizeof mask, &mask) != 0) {
    return std::nullopt;
  }
  return mask;
}

bool has_shadow_stack(base::Tid thread) {
  std::uint64_t pointer = 0;
  iovec area{.iov_base = &pointer, .iov_len = sizeof pointer};
  // EINVAL: not supported by the kernel; ENODEV: this thread has none (ssp_get()).
  return ptrace_request(PTRACE_GETREGSET, thread, kShadowStackRegister, &area) == 0 ||
         (errno != EINVAL && errno != ENODEV);
}

bool in_restartable_sequence(base::Tid thread, const Registers& registers) {
  RseqConfiguration configuration{};
  if (ptrace_request(kPtraceGetRseqConfiguration, thread, sizeof configuration, &configuration) <=
          0 ||
      configuration.rseq_abi_pointer == 0) {
    return false;
  }
  const memory::ProcessMemory memory{base::Pid{thread.value()}};
  const auto area = memory.read_pointer(
      base::RemoteAddress{configuration.rseq_abi_pointer + offsetof(struct rseq, rseq_cs)});
  if (!area || area->is_null()) {
    return false;
  }
  const auto section = memory.read_value<rseq_cs>(*area);
  return section && registers.general.rip - section->start_ip < section->post_commit_offset;
}

InterruptedCall interrupted_call(const Registers& registers) {
  const auto number = static_cast<std::int64_t>(registers.general.orig_rax);
  const auto result = static_cast<std::int64_t>(registers.general.rax);
  InterruptedCall call{
      .number = number, .futex = number == SYS_futex, .restarted = number == SYS_restart_syscall};
  if (number < 0) {
    return {};
  }
  switch (result) {
    case kRestartSys:
    case kRestartNoIntr:
    case kRestartNoHand:
      call.kind = Interrupted::kRestarts;
      return call;
    case kRestartBlock:
      call.kind = Interrupted::kTimed;
      return call;
    case -EINTR:
      call.kind = Interrupted::kFails;
      return call;
    default:
      return {};
  }
}

std::array<std::uint64_t, 6> call_arguments(const Registers& registers) {
  const auto& all = registers.general;
  return {all.rdi, all.rsi, all.rdx, all.r10, all.r8, all.r9};
}

std::array<std::uint64_t, 17> in_dwarf_order(const Registers& registers) {
  const auto& all = registers.general;
  return {all.rax, all.rdx, all.rcx, all.rbx, all.rsi, all.rdi, all.rbp, all.rsp, all.r8,
          all.r9,  all.r10, all.r11, all.r12, all.r13, all.r14, all.r15, all.rip};
}

Registers resumable(const Registers& registers) {
  Registers result = registers;
  switch (interrupted_call(registers).kind) {
    case Interrupted::kRestarts:
      result.general.rax = registers.general.orig_rax;
      result.general.rip -= kSyscallLength;
      break;
    case Interrupted::kTimed:
      // The restart block does not survive rt_sigreturn: restart_syscall then returns EINTR.
      result.general.rax = static_cast<unsigned long long>(-EINTR);
      break;
    case Interrupted::kNo:
    case Interrupted::kFails:
      break;
  }
  result.general.orig_rax = ~0ULL;
  return result;
}

Registers returning_eintr(const Registers& registers) {
  Registers result = registers;
  result.general.rax = static_cast<unsigned long long>(-EINTR);
  result.general.orig_rax = ~0ULL;  // no system call to restart
  return result;
}

const char* system_call_name(std::int64_t number) {
  struct Name {
    std::int64_t number;
    const char* name;
  };
  // System calls in which Python programs typically wait.
  static constexpr std::array kNames = std::to_array<Name>({
      {SYS_read, "read"},
      {SYS_write, "write"},
      {SYS_poll, "poll"},
      {SYS_ppoll, "ppoll"},
      {SYS_select, "select"},
      {SYS_pselect6, "pselect6"},
      {SYS_epoll_wait, "epoll_wait"},
      {SYS_epoll_pwait, "epoll_pwait"},
      {SYS_futex, "futex"},
      {SYS_nanosleep, "nanosleep"},
      {SYS_clock_nanosleep, "clock_nanosleep"},
      {SYS_wait4, "wait4"},
      {SYS_waitid, "waitid"},
      {SYS_accept, "accept"},
      {SYS_accept4, "accept4"},
      {SYS_connect, "connect"},
      {SYS_recvfrom, "recvfrom"},
      {SYS_recvmsg, "recvmsg"},
      {SYS_sendto, "sendto"},
      {SYS_sendmsg, "sendmsg"},
      {SYS_rt_sigtimedwait, "rt_sigtimedwait"},
      {SYS_rt_sigsuspend, "rt_sigsuspend"},
      {SYS_pause, "pause"},
      {SYS_flock, "flock"},
      {SYS_fcntl, "fcntl"},
      {SYS_openat, "openat"},
      {SYS_fsync, "fsync"},
      {SYS_restart_syscall, "a timed wait"},
      {SYS_vfork, "vfork"},
      {SYS_clone, "clone"},
  });
  for (const auto& entry : kNames) {
    if (entry.number == number) {
      return entry.name;
    }
  }
  return "another system call";
}

}  // namespace pyinject::tracee
