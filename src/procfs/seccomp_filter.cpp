#include "procfs/seccomp_filter.hpp"

#include "procfs/bpf_machine.hpp"

#include <algorithm>

#include <fcntl.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/syscall.h>

namespace pyinject::procfs {

namespace {

// The kernel compares actions as signed numbers: SECCOMP_RET_KILL_PROCESS is the only negative one
// (seccomp_run_filters).
std::int32_t strictness(std::uint32_t value) {
  return static_cast<std::int32_t>(value & SECCOMP_RET_ACTION_FULL);
}

struct NamedCall {
  std::string_view name;
  SystemCall call;
};

std::optional<std::uint64_t> number(std::int64_t value) {
  return static_cast<std::uint64_t>(value);
}

// The calls of new_code_arena and perf_map_init_state of Python/perf_trampoline.c,
// PyUnstable_WritePerfMapEntry of Python/sysmodule.c, and of libc and the interpreter's locks below
// them.
std::vector<NamedCall> calls_of_activation() {
  using Args = std::array<std::optional<std::uint64_t>, 6>;
  constexpr std::int64_t kArena = 65536;
  constexpr auto kUnknown = std::nullopt;
  const auto flags = number(O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
  const auto rwx = [](int protection) { return number(protection); };
  std::vector<NamedCall> calls;
  const auto add = [&](std::string_view name, long nr, const Args& args = {}) {
    calls.push_back({name, {.number = static_cast<std::uint32_t>(nr), .args = args}});
  };
  add("mmap", SYS_mmap,
      Args{0, number(kArena), rwx(PROT_READ | PROT_WRITE), number(MAP_PRIVATE | MAP_ANONYMOUS),
           number(-1), 0});
  add("mprotect", SYS_mprotect, Args{kUnknown, number(kArena), rwx(PROT_READ | PROT_EXEC)});
  add("munmap", SYS_munmap);
  add("openat", SYS_openat, Args{number(AT_FDCWD), kUnknown, flags, number(0600)});
  add("open", SYS_open, Args{kUnknown, flags, number(0600)});
  add("fstat", SYS_fstat);
  add("newfstatat", SYS_newfstatat);
  add("write", SYS_write);
  add("fcntl", SYS_fcntl);
  add("ioctl", SYS_ioctl);
  add("lseek", SYS_lseek);
  add("getpid", SYS_getpid, Args{});
  add("futex", SYS_futex);
  add("brk", SYS_brk);
  add("rt_sigreturn", SYS_rt_sigreturn);
  add("close", SYS_close);
  add("umask", SYS_umask);
  return calls;
}

std::string_view other_of_pair(std::string_view call) {
  constexpr std::array<std::array<std::string_view, 2>, 2> kPairs{
      {{"open", "openat"}, {"fstat", "newfstatat"}}};
  for (const auto& [one, other] : kPairs) {
    if (call == one) {
      return other;
    }
    if (call == other) {
      return one;
    }
  }
  return "";
}

}  // namespace

std::optional<std::uint32_t> evaluate(std::span<const sock_filter> program,
                                      const SystemCall& call) {
  if (program.size() > BPF_MAXINSNS) {
    return std::nullopt;
  }
  BpfMachine machine{call};
  // All jumps are forward, so this terminates.
  for (std::uint64_t at = 0; at < program.size(); at += 1 + std::uint64_t{machine.skip()}) {
    switch (machine.execute(program[static_cast<std::size_t>(at)])) {
      case BpfMachine::Step::kNext:
        break;
      case BpfMachine::Step::kReturn:
        return machine.value();
      case BpfMachine::Step::kUnknown:
        return std::nullopt;
    }
  }
  return std::nullopt;
}

std::optional<std::uint32_t> worst_of(std::span<const SeccompProgram> filters,
                                      const SystemCall& call) {
  std::uint32_t worst = SECCOMP_RET_ALLOW;
  bool all_known = true;
  for (const auto& program : filters) {
    const auto value = evaluate(program, call);
    all_known = all_known && value.has_value();
    if (value && strictness(*value) < strictness(worst)) {
      worst = *value;
    }
  }
  const bool known = all_known || outcome_of(worst) == SeccompOutcome::kKills;
  return known ? std::optional{worst} : std::nullopt;
}

SeccompOutcome outcome_of(std::optional<std::uint32_t> value) {
  if (!value) {
    return SeccompOutcome::kUnknown;
  }
  switch (*value & SECCOMP_RET_ACTION_FULL) {
    case SECCOMP_RET_ALLOW:
    case SECCOMP_RET_LOG:
      return SeccompOutcome::kAllowed;
    case SECCOMP_RET_ERRNO:
    case SECCOMP_RET_TRACE:
      return SeccompOutcome::kFails;
    case SECCOMP_RET_USER_NOTIF:
      return SeccompOutcome::kUnknown;
    default:  // also what the kernel does for unknown actions
      return SeccompOutcome::kKills;
  }
}

std::vector<SeccompProblem> judge(std::span<const SeccompProgram> filters) {
  std::vector<SeccompProblem> problems;
  for (const auto& [name, call] : calls_of_activation()) {
    const auto outcome = outcome_of(worst_of(filters, call));
    if (outcome != SeccompOutcome::kAllowed) {
      problems.push_back({.call = name, .outcome = outcome, .certain = true});
    }
  }
  const auto all = problems;
  for (auto& problem : problems) {
    const auto other = other_of_pair(problem.call);
    problem.certain =
        other.empty() || std::ranges::find(all, other, &SeccompProblem::call) != all.end();
  }
  return problems;
}

}  // namespace pyinject::procfs
