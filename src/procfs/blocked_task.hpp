// Where a blocked task waits: in the kernel and in user space.
#pragma once

#include "pyinject/base/pid.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::procfs {

// A kernel function on a task's stack.
struct KernelFrame {
  std::string name;
  std::uint64_t offset = 0;   // of the address in the function
  std::uint64_t size = 0;     // of the function; 0: unknown
  std::uint64_t address = 0;  // 0: unknown
};

// Parses /proc/PID/task/TID/stack. Skips lines that are no functions, and everything after 64
// frames.
[[nodiscard]] std::vector<KernelFrame> parse_kernel_stack(std::string_view text);
// Innermost first. Without CAP_SYS_ADMIN, only the function in which the task waits (wchan). Empty:
// neither is readable, or the task runs or has exited.
[[nodiscard]] std::vector<KernelFrame> read_kernel_stack(base::Pid pid, base::Tid tid);

// Whether a task in state R is on a processor now, or waits for one. nullopt: unknown without
// CAP_SYS_ADMIN.
[[nodiscard]] std::optional<bool> read_on_processor(base::Pid pid, base::Tid tid);

// Sets the addresses of FRAMES from TEXT, the contents of /proc/kallsyms. Of several functions with
// the same name, uses the one with the same size.
void find_kernel_addresses(std::string_view text, const std::vector<KernelFrame*>& frames);
// The same with the file itself, which shows no addresses without CAP_SYSLOG.
void find_kernel_addresses(const std::vector<KernelFrame*>& frames);

// The contents of /proc/PID/task/TID/syscall, proc_pid_syscall(5). nullopt: errno says why; EACCES
// if the task belongs to another user and the caller has only CAP_SYS_PTRACE. Does not throw if
// resources are short.
[[nodiscard]] std::optional<std::string> read_system_call(base::Pid pid, base::Tid tid);

// The system call number in such a TEXT; nullopt: the task runs, or is blocked outside of system
// calls.
[[nodiscard]] std::optional<long> parse_system_call(std::string_view text);

// A system call and its arguments, as the task's registers have them.
struct BlockedCall {
  long number = 0;
  std::array<std::uint64_t, 6> arguments{};
  bool operator==(const BlockedCall&) const = default;
};
// nullopt: as for parse_system_call().
[[nodiscard]] std::optional<BlockedCall> parse_blocked_call(std::string_view text);
// CALL itself, or the call that it continues: after a stop, the kernel continues a call with a time
// limit as restart_syscall(2), with the same arguments. KERNEL: the names of the functions in which
// the task is blocked; empty: unknown, so that the arguments alone decide, where they can.
[[nodiscard]] BlockedCall continued_call(const BlockedCall& call,
                                         std::span<const std::string> kernel);
// The address of the futex for which a task waits, according to such a TEXT; nullopt: it waits for
// something else.
[[nodiscard]] std::optional<std::uint64_t> parse_futex_wait(std::string_view text);

// The user-space position of a blocked task.
struct UserPlace {
  std::uint64_t stack_pointer = 0;
  std::uint64_t program_counter = 0;
};

// From /proc/PID/task/TID/syscall; nullopt for "running".
[[nodiscard]] std::optional<UserPlace> parse_user_place(std::string_view text);
// nullopt: the task runs, is unreadable, or has exited.
[[nodiscard]] std::optional<UserPlace> read_user_place(base::Pid pid, base::Tid tid);

}  // namespace pyinject::procfs
