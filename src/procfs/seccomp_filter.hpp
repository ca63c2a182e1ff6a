// Predicts what a target's seccomp filters do to the system calls of an activation. Pure: the
// programs come from PTRACE_SECCOMP_GET_FILTER, and any bytes are safe.
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

// A system call as seen by a filter (struct seccomp_data). Unknown arguments are nullopt; the
// instruction pointer is always unknown.
struct SystemCall {
  std::uint32_t number = 0;
  std::uint32_t arch = 0xc000003e;  // AUDIT_ARCH_X86_64
  std::array<std::optional<std::uint64_t>, 6> args;
};

// The program's return value (SECCOMP_RET_* with its data). nullopt: undetermined, because the
// program has an instruction that seccomp does not allow, has no end, or depends on an unknown
// value.
[[nodiscard]] std::optional<std::uint32_t> evaluate(std::span<const sock_filter> program,
                                                    const SystemCall& call);

// The value of the deciding filter: all installed filters are run and the strictest action wins,
// seccomp(2). nullopt: one of them is undetermined and the others do not kill.
[[nodiscard]] std::optional<std::uint32_t> worst_of(std::span<const SeccompProgram> filters,
                                                    const SystemCall& call);

enum class SeccompOutcome {
  kAllowed,  // also if logged
  kKills,    // the process or thread; also SECCOMP_RET_TRAP: SIGSYS, which usually kills
  kFails,    // with an errno, or because there is no tracer
  kUnknown,  // decided by a supervisor, or undetermined
};
[[nodiscard]] SeccompOutcome outcome_of(std::optional<std::uint32_t> value);

struct SeccompProblem {
  std::string_view call;  // "mprotect"
  SeccompOutcome outcome{};
  // False: libc may use the alternative of open/openat or fstat/newfstatat, which is allowed.
  bool certain = true;
};

// The system calls of an activation (executable memory, the map file, locks) that FILTERS do not
// simply allow, with the arguments that CPython passes, because systemd's MemoryDenyWriteExecute=
// depends on them. Empty: no obstacle.
[[nodiscard]] std::vector<SeccompProblem> judge(std::span<const SeccompProgram> filters);

}  // namespace pyinject::procfs
