#include "doctor/checks.hpp"

#include <fmt/format.h>

namespace pyinject::doctor {

namespace {

using procfs::Capability;

std::string shown(std::string_view sysctl, std::optional<int> value) {
  return value ? fmt::format("{} is {}", sysctl, *value) : fmt::format("{} is unreadable", sysctl);
}

}  // namespace

Check check_paranoid(const Facts& facts) {
  constexpr int kWithKernel = 1;
  constexpr int kOwnProcesses = 2;  // Debian and Ubuntu refuse every event above this
  const auto level = facts.kernel.paranoid;
  Check check = ok("paranoid", shown("kernel.perf_event_paranoid", level));
  if (has(facts.own, Capability::kPerfmon)) {
    check.found += "; CAP_PERFMON overrides it";
    return check;
  }
  if (level && *level <= kWithKernel) {
    return check;
  }
  check.state = State::kLimited;
  check.cost = "no samples in the kernel, and no recording of the whole machine (-a)";
  check.command = set_sysctl(facts.own, "kernel.perf_event_paranoid=1");
  if (level.value_or(0) > kOwnProcesses && !facts.perf.record_failure.empty()) {
    check.state = State::kFailed;
    check.cost = "perf may not open any event";
    check.blocks = every_engine();
  }
  check.remedy = procfs::how_to_get(Capability::kPerfmon, facts.own.root, facts.own.capabilities,
                                    facts.own.nested);
  return check;
}

Check check_yama(const Facts& facts) {
  constexpr int kNobody = 3;
  const auto scope = facts.kernel.ptrace_scope;
  if (!scope) {
    return ok("yama", "not active");
  }
  Check check = ok("yama", shown("kernel.yama.ptrace_scope", scope));
  if (*scope <= 0) {
    return check;
  }
  if (*scope < kNobody && has(facts.own, Capability::kSysPtrace)) {
    check.found += "; CAP_SYS_PTRACE overrides it";
    return check;
  }
  check.state = State::kFailed;
  check.cost = "no running process can be examined or recorded; record -- COMMAND launches one";
  check.blocks = every_engine();
  if (*scope >= kNobody) {
    check.remedy =
        "3 stays until the next boot: remove the setting from /etc/sysctl.conf and "
        "/etc/sysctl.d, and reboot";
    check.command = "grep -r ptrace_scope /etc/sysctl.conf /etc/sysctl.d /usr/lib/sysctl.d";
    return check;
  }
  check.remedy = procfs::how_to_get(Capability::kSysPtrace, facts.own.root, facts.own.capabilities,
                                    facts.own.nested);
  check.command = set_sysctl(facts.own, "kernel.yama.ptrace_scope=0");
  return check;
}

// kallsyms_show_value() in the kernel's kernel/ksyms_common.c: 0 shows addresses if perf events of
// the kernel are permitted (perf_event_paranoid at most 1), 0 and 1 show them to CAP_SYSLOG.
Check check_kptr_restrict(const Facts& facts) {
  const auto value = facts.kernel.kptr_restrict;
  Check check = ok("kptr_restrict", shown("kernel.kptr_restrict", value));
  if (facts.kernel.kernel_names) {
    return check;
  }
  const bool syslog = has(facts.own, Capability::kSyslog);
  check.state = State::kLimited;
  check.found += syslog ? "" : ", without CAP_SYSLOG";
  check.found += ": /proc/kallsyms shows no addresses";
  check.cost = "functions of the kernel have no names; why cannot tell short waits apart";
  check.command =
      set_sysctl(facts.own, syslog ? "kernel.kptr_restrict=1"
                                   : "kernel.kptr_restrict=0 kernel.perf_event_paranoid=1");
  if (!syslog) {
    check.remedy = procfs::how_to_get(Capability::kSyslog, facts.own.root, facts.own.capabilities,
                                      facts.own.nested);
  }
  return check;
}

Check check_max_stack(const Facts& facts) {
  constexpr int kDefault = 127;
  const auto most = facts.kernel.max_stack;
  Check check = ok("max_stack", shown("kernel.perf_event_max_stack", most));
  if (most.value_or(kDefault) >= kDefault) {
    return check;
  }
  check.state = State::kLimited;
  check.cost = fmt::format("callchains of the kernel end after {} functions", *most);
  check.remedy = "close all events with callchains first";
  check.command = set_sysctl(facts.own, fmt::format("kernel.perf_event_max_stack={}", kDefault));
  return check;
}

// perf takes the largest power of two of pages below this limit as its buffer for each CPU.
Check check_mlock(const Facts& facts) {
  constexpr int kDefault = 516;
  const auto kibibytes = facts.kernel.mlock_kb;
  Check check = ok("mlock", shown("kernel.perf_event_mlock_kb", kibibytes));
  if (has(facts.own, Capability::kIpcLock)) {
    check.found += "; CAP_IPC_LOCK overrides it";
    return check;
  }
  if (kibibytes.value_or(kDefault) >= kDefault) {
    return check;
  }
  check.state = State::kLimited;
  check.cost = "perf's buffers are small: more samples are lost";
  check.remedy = procfs::how_to_get(Capability::kIpcLock, facts.own.root, facts.own.capabilities,
                                    facts.own.nested);
  check.command = set_sysctl(facts.own, fmt::format("kernel.perf_event_mlock_kb={}", kDefault));
  return check;
}

}  // namespace pyinject::doctor
