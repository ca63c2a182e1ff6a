// What would a target's seccomp filters do to the system calls that the activation makes in it?
// Pure: the programs come from elsewhere (PTRACE_SECCOMP_GET_FILTER) and any bytes are safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <linux/filter.h>

namespace pyinject::procfs {

using SeccompProgram = std::vector<sock_filter>;

// A system call as a filter sees it (struct seccomp_data). Arguments that are not known in advance
// are nullopt; the instruction pointer never is known.
struct SystemCall {
  std::uint32_t number = 0;
  std::uint32_t arch = 0xc000003e;  // AUDIT_ARCH_X86_64
  std::array<std::optional<std::uint64_t>, 6> args;
};

// The program's return value (SECCOMP_RET_* with its data). nullopt: it cannot be told, as the
// program has an instruction that seccomp does not allow, no end, or decides by something unknown.
[[nodiscard]] std::optional<std::uint32_t> evaluate(std::span<const sock_filter> program,
                                                    const SystemCall& call);

// The value of the filter that decides: all installed ones are run and the strictest action wins,
// seccomp(2). nullopt: one of them cannot be told and the others do not kill.
[[nodiscard]] std::optional<std::uint32_t> worst_of(std::span<const SeccompProgram> filters,
                                                    const SystemCall& call);

enum class SeccompOutcome {
  kAllowed,  // also when it is logged
  kKills,    // the process or the thread, and SECCOMP_RET_TRAP: SIGSYS, which kills as a rule
  kFails,    // with an errno, or for want of a tracer
  kUnknown,  // decided by a supervisor, or not to be told
};
[[nodiscard]] SeccompOutcome outcome_of(std::optional<std::uint32_t> value);

struct SeccompProblem {
  std::string_view call;  // "mprotect"
  SeccompOutcome outcome{};
  // False: libc may use the other one of open/openat or fstat/newfstatat, which is allowed.
  bool certain = true;
};

// Those of the system calls of an activation (executable memory, the map file, locks) that FILTERS
// do not just allow; with the arguments that CPython passes, as systemd's MemoryDenyWriteExecute=
// decides by them. Empty: nothing is in the way.
[[nodiscard]] std::vector<SeccompProblem> judge(std::span<const SeccompProgram> filters);

}  // namespace pyinject::procfs
