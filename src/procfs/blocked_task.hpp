// Where a task that does not run waits: in the kernel, and in its own code.
#pragma once

#include "pyinject/base/pid.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::procfs {

// A function of the kernel that a task is in.
struct KernelFrame {
  std::string name;
  std::uint64_t offset = 0;   // of the place in the function
  std::uint64_t size = 0;     // of the function; 0: not known
  std::uint64_t address = 0;  // of the place; 0: not known
};

// /proc/PID/task/TID/stack. Lines that are no functions are left out, as are those behind the first
// 64.
[[nodiscard]] std::vector<KernelFrame> parse_kernel_stack(std::string_view text);
// Innermost first. Without CAP_SYS_ADMIN only the function that the task waits in (wchan). Empty:
// neither may be read, the task runs, or has gone.
[[nodiscard]] std::vector<KernelFrame> read_kernel_stack(base::Pid pid, base::Tid tid);

// Fills in the addresses of FRAMES from the TEXT of /proc/kallsyms. Of several functions with one
// name that of the same size is taken.
void find_kernel_addresses(std::string_view text, const std::vector<KernelFrame*>& frames);
// The same from the file itself, which has no addresses without CAP_SYSLOG.
void find_kernel_addresses(const std::vector<KernelFrame*>& frames);

// /proc/PID/task/TID/syscall as it is, proc_pid_syscall(5). nullopt: errno says why; EACCES if the
// task is another user's and the caller has CAP_SYS_PTRACE only. Does not throw at a shortage.
[[nodiscard]] std::optional<std::string> read_system_call(base::Pid pid, base::Tid tid);

// The number of the system call that such a TEXT shows; nullopt: the task runs, or is blocked
// outside of system calls.
[[nodiscard]] std::optional<long> parse_system_call(std::string_view text);

// Of a blocked task in its own code.
struct UserPlace {
  std::uint64_t stack_pointer = 0;
  std::uint64_t program_counter = 0;
};

// /proc/PID/task/TID/syscall: "running" has none.
[[nodiscard]] std::optional<UserPlace> parse_user_place(std::string_view text);
// nullopt: it runs, may not be read, or has gone.
[[nodiscard]] std::optional<UserPlace> read_user_place(base::Pid pid, base::Tid tid);

}  // namespace pyinject::procfs
