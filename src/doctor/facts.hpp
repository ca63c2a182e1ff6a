// What doctor found out about this machine and about processes: plain values, so that every
// judgement can be tested.
#pragma once

#include "bpf/sampler.hpp"
#include "pyinject/targets/status_report.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::doctor {

// An optional part of the program.
struct BuildPart {
  std::string_view name = {};
  bool built_in = false;
  std::string_view needs = {};  // to build it
  std::string_view cost = {};   // without it
};

struct PerfFacts {
  std::string path = {};
  int major = 0;  // 0: unknown
  int minor = 0;
  bool named = false;        // by the user
  std::string problem = {};  // why no perf was found, with what to do; empty: found
  bool has_control = false;
  bool lacks_addr2line = false;  // and needs it (perf_locator.hpp)
  // Of a trial: `perf record` of a command that does nothing.
  std::string record_failure = {};  // with what to do; empty: it worked
  std::string distribution = {};    // ID and ID_LIKE of os-release(5)
};

// A system call that a seccomp filter on this tool prevents.
struct BlockedCall {
  std::string_view name = {};
  bool kills = false;  // false: it fails
};

struct DirectoryFacts {
  std::string path = {};
  bool writable = false;
  std::string why_not = {};
  std::uint64_t free_bytes = 0;
};

struct KernelFacts {
  std::string release = {};
  bool btf = false;
  bool locked_down = false;
  std::optional<int> paranoid = {};      // kernel.perf_event_paranoid
  std::optional<int> ptrace_scope = {};  // kernel.yama.ptrace_scope; nullopt: no Yama
  std::optional<int> kptr_restrict = {};
  bool kernel_names = false;  // /proc/kallsyms shows addresses
  std::optional<int> max_stack = {};
  std::optional<int> mlock_kb = {};
  bool tracefs_mounted = false;
  bool tracefs_readable = false;
};

struct OwnFacts {
  bool root = false;
  unsigned long long capabilities = 0;  // as in /proc/PID/status
  bool nested = false;                  // in a user namespace that is not the first one
  bool seccomp = false;                 // a filter is on this tool
  std::vector<BlockedCall> blocked = {};
  bool first_pid_namespace = true;
  bool own_proc = true;                      // /proc is that of our pid namespace
  std::string hidden_processes = {};         // hidepid= of /proc; empty: no process is hidden
  std::optional<bpf::Unavailable> bpf = {};  // nullopt: the BPF program can be loaded
};

// A file with machine code of a process.
struct CodeFile {
  std::string path = {};  // as the process names it
  bool symbols = false;
};

struct ProcessFacts {
  targets::ProcessStatus trampoline;  // as `status` shows it
  targets::ProcessStatus bpf;         // as --engine bpf would see it
  bool other_mounts = false;          // another mount namespace or root
  std::optional<CodeFile> interpreter = {};
  std::optional<CodeFile> libc = {};
};

struct Facts {
  std::vector<BuildPart> parts = {};
  PerfFacts perf;
  KernelFacts kernel;
  OwnFacts own;
  DirectoryFacts directory;  // for perf.data
  std::vector<ProcessFacts> processes = {};
};

}  // namespace pyinject::doctor
