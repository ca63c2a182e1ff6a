// What a thread does with its time: one list, with its words, for all that judge and show it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pyinject::sample {

enum class Use : std::uint8_t {
  // On a CPU.
  kPython,     // interpreting: the evaluator, and what it calls for byte code
  kC,          // a C function that Python called, or in an extension module
  kCollector,  // the garbage collector
  kImport,     // an import
  kKernel,     // a system call
  kUnknown,    // on a CPU or not
  // Off the CPU.
  kFault,      // a page fault, also on a CPU
  kSwap,       // a page fault that reads from swap
  kGil,        // waits for the GIL
  kLock,       // waits for a lock of Python
  kDisk,       // waits for a file
  kNetwork,    // waits for a server
  kChild,      // waits for a child process
  kPreempted,  // could run, but other threads have the CPU
  kThread,     // waits for what another thread does next: queue, event, condition, future, join
  kClient,     // waits for a connection or a request
  kPoll,       // waits for one of several files, as event loops do
  kPipe,
  kFutex,  // waits for a futex that is neither the GIL nor a known lock
  kSleep,
  kSignal,
};
inline constexpr std::size_t kUses = static_cast<std::size_t>(Use::kSignal) + 1;
inline constexpr std::size_t kCpuUses = static_cast<std::size_t>(Use::kUnknown) + 1;

struct UseFacts {
  Use use;
  std::string_view name;  // stable
  std::string_view text;  // for people
  std::string_view wait;  // in tables of waits; empty: the kernel's functions do not tell it
  bool idle;              // a thread without work spends its time so
  // If it explains why a process is not faster: the cause's stable name, the verdict, and what to
  // type next ({}: the pid). Empty: it does not.
  std::string_view cause = {};
  std::string_view verdict = {};
  std::string_view next = {};
};

inline constexpr std::string_view kNextDump = "perf-pyinject dump -p {}";
inline constexpr std::string_view kNextRecord =
    "perf-pyinject record -p {} --engine bpf -- sleep 10";
inline constexpr std::string_view kNextGil =
    "perf-pyinject record -p {} --engine bpf --gil --off-cpu -- sleep 10";

// By Use.
inline constexpr std::array<UseFacts, kUses> kUseFacts{{
    {Use::kPython, "python", "CPU: Python", "", false, "cpu_python",
     "CPU-bound in Python: threads with work run Python code", "perf-pyinject top -p {}"},
    {Use::kC, "c", "CPU: C function", "", false, "cpu_c",
     "CPU-bound in C: threads with work run C functions", kNextRecord},
    {Use::kCollector, "gc", "CPU: garbage collector", "", false, "cpu_gc",
     "CPU-bound in the garbage collector: threads with work collect garbage", kNextRecord},
    {Use::kImport, "import", "CPU: import", "", false, "cpu_import",
     "CPU-bound in imports: threads with work import modules", kNextRecord},
    {Use::kKernel, "kernel", "CPU: kernel", "", false, "cpu_kernel",
     "CPU-bound in the kernel: threads with work are in system calls", kNextRecord},
    {Use::kUnknown, "unknown", "unknown", "other", true},
    {Use::kFault, "fault", "page faults", "page fault", false, "faults",
     "memory-bound: threads with work handle page faults",
     "perf-pyinject record -p {} --engine bpf -e page-faults -c 1 -- sleep 10"},
    {Use::kSwap, "swap", "page faults that read from swap", "swap", false, "swap",
     "swapping: threads with work wait for memory that was swapped out", "vmstat 1"},
    {Use::kGil, "gil", "waits for the GIL", "", false, "gil",
     "GIL-bound: threads with work wait for the GIL", kNextGil},
    {Use::kLock, "lock", "waits for a lock", "", false, "lock",
     "lock-bound: threads with work wait for a lock", kNextDump},
    {Use::kDisk, "disk", "waits for the disk", "disk", false, "disk",
     "disk-bound: threads with work wait for files",
     "perf-pyinject record -p {} --engine bpf --off-cpu -- sleep 10"},
    {Use::kNetwork, "network", "waits for the network", "network", false, "network",
     "network-bound: threads with work wait for other servers", kNextDump},
    {Use::kChild, "child", "waits for a process", "child process", false, "child",
     "waits for child processes: threads with work wait for them", kNextDump},
    {Use::kPreempted, "preempted", "waits for a CPU", "", false, "preempted",
     "short of CPUs: threads with work wait for a CPU", "uptime"},
    {Use::kThread, "thread", "waits for a thread", "", true},
    {Use::kClient, "client", "waits for a client", "connection", true},
    {Use::kPoll, "poll", "waits for events", "poll", true},
    {Use::kPipe, "pipe", "waits for a pipe", "pipe", true},
    {Use::kFutex, "futex", "waits for a futex", "futex", true},
    {Use::kSleep, "sleep", "sleeps", "sleep", true},
    {Use::kSignal, "signal", "waits for a signal", "signal", true},
}};

static_assert([] {
  for (std::size_t i = 0; i < kUses; ++i) {
    if (kUseFacts.at(i).use != static_cast<Use>(i)) {
      return false;
    }
  }
  return true;
}());

[[nodiscard]] constexpr const UseFacts& facts(Use use) {
  return kUseFacts.at(static_cast<std::size_t>(use));
}

// Whether whatever a line leads to is told beside it: its C functions, servers, files or processes.
[[nodiscard]] constexpr bool has_detail(Use use) {
  return use == Use::kC || use == Use::kNetwork || use == Use::kDisk || use == Use::kChild;
}

}  // namespace pyinject::sample
