#include "doctor/collect.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "bpf/load_error.hpp"
#include "doctor/build_parts.hpp"
#include "doctor/seccomp_probe.hpp"
#include "perf/tracefs.hpp"
#include "procfs/kernel_symbols.hpp"
#include "procfs/namespaces.hpp"
#include "procfs/own_rights.hpp"
#include "procfs/proc_mount.hpp"
#include "procfs/status.hpp"
#include "procfs/sysctl.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/record/plan.hpp"

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <variant>

#include <fcntl.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace pyinject::doctor {

namespace {

constexpr std::size_t kMostOfSmallFile = 16384;

std::optional<int> number_of(std::string_view sysctl) {
  const auto text = procfs::read_sysctl(sysctl);
  return text ? base::parse_number<int>(*text) : std::nullopt;
}

// ID and ID_LIKE, os-release(5).
std::string distribution() {
  const auto text = base::read_file("/etc/os-release", kMostOfSmallFile).value_or("");
  std::string found;
  for (const auto line : base::split(text, '\n')) {
    for (const std::string_view key : {"ID=", "ID_LIKE="}) {
      if (line.starts_with(key)) {
        found += std::string{line.substr(key.size())} + " ";
      }
    }
  }
  return found;
}

DirectoryFacts collect_directory() {
  DirectoryFacts facts;
  std::error_code error;
  facts.path = std::filesystem::current_path(error).string();
  struct statvfs space {};
  if (::statvfs(".", &space) == 0) {
    facts.free_bytes = std::uint64_t{space.f_bavail} * space.f_frsize;
  }
  // By the effective user; also fails on a read-only file system.
  facts.writable = ::faccessat(AT_FDCWD, ".", W_OK | X_OK, AT_EACCESS) == 0;
  if (!facts.writable) {
    facts.why_not = base::errno_text(errno);
  }
  return facts;
}

}  // namespace

PerfFacts collect_perf(const perf::PerfSearch& search) {
  constexpr std::chrono::seconds kTrial{20};
  PerfFacts facts;
  facts.distribution = distribution();
  facts.named = search.option.has_value() || !search.environment.value_or("").empty();
  try {
    const auto perf = perf::locate_perf(search, base::Deadline::after(record::kPerfAnswers));
    facts.path = perf.path;
    facts.major = perf.major;
    facts.minor = perf.minor;
    facts.lacks_addr2line = perf::lacks_addr2line(perf);
    const auto help = base::run_captured({perf.path, "record", "-h"},
                                         base::Deadline::after(record::kPerfAnswers));
    facts.has_control = help.output.find("--control") != std::string::npos;
    const auto trial = base::run_captured({perf.path, "record", "--no-buildid",
                                           "--no-buildid-cache", "-o", "/dev/null", "--", "true"},
                                          base::Deadline::after(kTrial));
    if (!trial.status) {
      facts.record_failure = "perf record did not end in time";
    } else if (!trial.status->success()) {
      facts.record_failure = perf::explain_record_failure(*trial.status, trial.output);
    }
  } catch (const base::Error& error) {
    facts.problem = error.what();
  }
  return facts;
}

KernelFacts collect_kernel() {
  KernelFacts facts;
  utsname names{};
  facts.release = ::uname(&names) == 0 ? names.release : "";
  facts.btf = ::access("/sys/kernel/btf/vmlinux", R_OK) == 0;
  facts.locked_down = bpf::locked_down();
  facts.paranoid = number_of("kernel.perf_event_paranoid");
  facts.ptrace_scope = number_of("kernel.yama.ptrace_scope");
  facts.kptr_restrict = number_of("kernel.kptr_restrict");
  facts.kernel_names = procfs::KernelSymbols::readable();
  facts.max_stack = number_of("kernel.perf_event_max_stack");
  facts.mlock_kb = number_of("kernel.perf_event_mlock_kb");
  const auto tracefs = perf::find_tracefs();
  facts.tracefs_mounted = tracefs.has_value();
  facts.tracefs_readable = tracefs && ::access((*tracefs + "/events").c_str(), R_OK | X_OK) == 0;
  return facts;
}

OwnFacts collect_own() {
  OwnFacts facts;
  facts.root = ::geteuid() == 0;
  facts.own_proc = procfs::proc_is_of_our_pid_namespace();
  facts.first_pid_namespace = procfs::in_first_pid_namespace();
  facts.hidden_processes = procfs::hidden_processes().value_or("");
  // With the /proc of another namespace, our pid is that of another process.
  if (const auto own = facts.own_proc ? procfs::read_status(base::Pid{::getpid()}) : std::nullopt) {
    facts.capabilities = own->effective_capabilities;
    facts.nested =
        procfs::own_namespace_number(procfs::Namespace::kUser) != procfs::kFirstUserNamespace;
    facts.seccomp = own->seccomp != procfs::SeccompMode::kNone;
  }
  if (facts.seccomp) {
    facts.blocked = blocked_calls();
  }
  bpf::Receiver receiver{.code = [](const sample::Code&) {}, .stack = [](const sample::Stack&) {}};
  auto opened = bpf::Sampler::open({.native = true}, std::move(receiver));
  if (auto* const why = std::get_if<bpf::Unavailable>(&opened)) {
    facts.bpf = std::move(*why);
  }
  return facts;
}

Facts collect(const perf::PerfSearch& search, const std::vector<base::Pid>& pids) {
  Facts facts;
  facts.parts = build_parts();
  facts.perf = collect_perf(search);
  facts.kernel = collect_kernel();
  facts.own = collect_own();
  facts.directory = collect_directory();
  if (facts.own.own_proc && !pids.empty()) {  // report_status() takes no pids for all
    facts.processes = collect_processes(pids);
  }
  return facts;
}

}  // namespace pyinject::doctor
