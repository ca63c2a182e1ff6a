#include "doctor/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace pyinject::doctor {

namespace {

using procfs::Capability;

struct Needed {
  Capability capability;
  std::string_view check;
  std::string_view cost;
  std::string_view engine;  // that needs it for every process; empty: none
};

constexpr auto kNeeded = std::to_array<Needed>({
    {.capability = Capability::kSysPtrace,
     .check = "cap_sys_ptrace",
     .cost = "processes of other users cannot be examined or recorded",
     .engine = {}},
    {.capability = Capability::kPerfmon,
     .check = "cap_perfmon",
     .cost = "no --engine bpf, join and why; perf's events depend on kernel.perf_event_paranoid",
     .engine = kBpf},
    {.capability = Capability::kBpf,
     .check = "cap_bpf",
     .cost = "no --engine bpf, join and why; top reads stacks from outside",
     .engine = kBpf},
});

// The command that runs this tool with all capabilities that it uses, as the same user.
constexpr std::string_view kWithCapabilities =
    "sudo setpriv --reuid=$(id -u) --regid=$(id -g) --init-groups "
    "--inh-caps=+sys_ptrace,+perfmon,+bpf --ambient-caps=+sys_ptrace,+perfmon,+bpf "
    "perf-pyinject doctor";

}  // namespace

void check_capabilities(const Facts& facts, std::vector<Check>& checks) {
  for (const auto& needed : kNeeded) {
    if (has(facts.own, needed.capability)) {
      checks.push_back(ok(needed.check, facts.own.root ? "root has it" : "granted"));
      continue;
    }
    Check check{.name = std::string{needed.check},
                .state = State::kLimited,
                .found = fmt::format("{} without CAP_{}", facts.own.root ? "root" : "a user",
                                     procfs::name(needed.capability)),
                .cost = std::string{needed.cost},
                .remedy = procfs::how_to_get(needed.capability, facts.own.root,
                                             facts.own.capabilities, facts.own.nested),
                .command = facts.own.root ? "" : std::string{kWithCapabilities}};
    if (!needed.engine.empty()) {
      check.blocks = {needed.engine};
    }
    checks.push_back(std::move(check));
  }
}

Check check_bpf(const Facts& facts) {
  const auto& why = facts.own.bpf;
  if (!why) {
    return ok("bpf", "the kernel accepts the BPF program");
  }
  return {.name = "bpf",
          .state = State::kLimited,
          .found = fmt::format("{} ({})", why->found, why->name),
          .cost = "no --engine bpf, join and why; top reads stacks from outside",
          .remedy = why->remedy,
          .blocks = {kBpf}};
}

Check check_seccomp(const Facts& facts) {
  const auto& own = facts.own;
  if (own.blocked.empty()) {
    return ok("seccomp", own.seccomp ? "a filter that permits what recording needs" : "no filter");
  }
  std::string calls;
  Check check{.name = "seccomp"};
  for (const auto& call : own.blocked) {
    calls += fmt::format("{}{} {}", calls.empty() ? "" : ", ", call.name,
                         call.kills ? "kills the caller" : "fails");
    // Both engines open events and read the process; only the trampoline stops and writes it.
    if (call.name == "perf_event_open" || call.name == "process_vm_readv") {
      check.blocks = every_engine();
    } else if (check.blocks.empty()) {
      check.blocks = {kTrampoline};
    }
  }
  const bool every = check.blocks.size() == every_engine().size();
  check.state = every ? State::kFailed : State::kLimited;
  check.found = "a seccomp filter on this tool: " + calls;
  check.cost = every ? "nothing can be recorded" : "no process can be activated";
  check.remedy =
      "permit these calls: docker run --security-opt seccomp=unconfined; in Kubernetes "
      "seccompProfile: {type: Unconfined}; in a systemd unit SystemCallFilter=";
  return check;
}

Check check_pid_namespace(const Facts& facts) {
  if (!facts.own.own_proc) {
    return {.name = "pid_namespace",
            .state = State::kFailed,
            .found = "/proc belongs to another pid namespace: its pids are other processes here",
            .cost = "no process can be examined or recorded",
            .remedy = "mount the /proc of this namespace (unshare --mount-proc)",
            .command = as_root(facts.own, "mount -t proc proc /proc"),
            .blocks = every_engine()};
  }
  if (facts.own.first_pid_namespace) {
    return ok("pid_namespace", "the host's");
  }
  return {.name = "pid_namespace",
          .state = State::kLimited,
          .found = "this tool runs in a pid namespace of its own (a container)",
          .cost = "processes outside of it are invisible",
          .remedy =
              "run it on the host, or in the host's namespace: docker run --pid=host, "
              "hostPID: true in Kubernetes"};
}

Check check_hidepid(const Facts& facts) {
  const auto& own = facts.own;
  if (own.hidden_processes.empty()) {
    return ok("hidepid", "/proc shows every process");
  }
  const auto found = "/proc is mounted with hidepid=" + own.hidden_processes;
  if (has(own, Capability::kSysPtrace)) {
    return ok("hidepid", found + "; CAP_SYS_PTRACE overrides it");
  }
  return {
      .name = "hidepid",
      .state = State::kLimited,
      .found = found,
      .cost = "processes of other users are invisible",
      .remedy = procfs::how_to_get(Capability::kSysPtrace, own.root, own.capabilities, own.nested),
      .command = as_root(own, "mount -o remount,hidepid=0 /proc")};
}

}  // namespace pyinject::doctor
