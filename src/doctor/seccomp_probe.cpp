#include "doctor/seccomp_probe.hpp"

#include <array>
#include <cerrno>
#include <optional>

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pyinject::doctor {

namespace {

struct ProbedCall {
  std::string_view name;
  long number;
  std::array<long, 6> arguments;
  int error;  // of a kernel without a filter
};

constexpr long kInvalid = -1;
constexpr auto kProbed = std::to_array<ProbedCall>({
    // kernel/events/core.c: unknown flags are rejected first
    {"perf_event_open", SYS_perf_event_open, {0, 0, 0, 0, kInvalid, 0}, EINVAL},
    // kernel/ptrace.c: there is no process 0
    {"ptrace", SYS_ptrace, {PTRACE_SEIZE, 0, 0, 0, 0, 0}, ESRCH},
    // mm/process_vm_access.c: flags are rejected first
    {"process_vm_readv", SYS_process_vm_readv, {0, 0, 0, 0, 0, kInvalid}, EINVAL},
    {"process_vm_writev", SYS_process_vm_writev, {0, 0, 0, 0, 0, kInvalid}, EINVAL},
});

// Only calls that are safe after fork() in a process with threads.
[[noreturn]] void try_in_child(const ProbedCall& call) {
  const auto& to = call.arguments;
  const long result = ::syscall(call.number, to[0], to[1], to[2], to[3], to[4], to[5]);
  ::_exit(result == -1 && errno == call.error ? 0 : 1);
}

std::optional<BlockedCall> probe(const ProbedCall& call) {
  const pid_t child = ::fork();
  if (child == 0) {
    try_in_child(call);
  }
  int status = 0;
  while (child > 0 && ::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) {
      return std::nullopt;
    }
  }
  if (child < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
    return std::nullopt;
  }
  return BlockedCall{.name = call.name, .kills = WIFSIGNALED(status)};
}

}  // namespace

std::vector<BlockedCall> blocked_calls() {
  std::vector<BlockedCall> blocked;
  for (const auto& call : kProbed) {
    if (const auto found = probe(call)) {
      blocked.push_back(*found);
    }
  }
  return blocked;
}

}  // namespace pyinject::doctor
