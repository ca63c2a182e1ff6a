// Chooses the call graph option that suits the targets, and tells what the user's own will miss.
// Pure except for most_callchain_entries().
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/perf/perf_options.hpp"
#include "pyinject/python/target.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pyinject::record {

struct CallGraphFacts {
  base::Pid pid;
  python::Version version;
  bool frame_pointers = false;
  std::string extension_without = {};  // a module without frame pointers; empty: none
  // Current largest stack use of a thread; nullopt: not readable.
  std::optional<std::uint64_t> stack_bytes = {};
  std::size_t python_calls = 0;  // current depth of the deepest Python stack
};

struct CallGraphWishes {
  std::optional<perf::ChosenCallGraph> chosen = {};  // by the user
  bool frequency_chosen = false;
  std::optional<std::uint64_t> frequency = {};  // samples per second, if one was chosen
  std::size_t most_entries = 127;               // kernel.perf_event_max_stack
  std::uint64_t buffer_bytes = 0;  // per processor, with stack dumps; 0: perf's default
  bool others = false;             // perf also records processes that are no targets
  bool all = false;                // perf records all processes
  // Without `all`: the processes that perf records with what they start. Not all are targets.
  std::vector<base::Pid> recorded = {};
};

struct CallGraphChoice {
  std::vector<std::string> arguments;  // for perf record; empty: the user has chosen
  std::string note;                    // one line: what was chosen and why, or what will be missing
  bool complete = true;                // as far as known, no stack will be truncated
};

// Whether the choice depends on the target's stack_bytes, which takes one stop of the target.
[[nodiscard]] bool needs_stack_use(const CallGraphFacts& target, const CallGraphWishes& wishes);

// Why the kernel's callchains do not suffice for TARGET, for which needs_stack_use() is true.
[[nodiscard]] std::string why_not_callchains(const CallGraphFacts& target,
                                             const CallGraphWishes& wishes);

// No targets yet: chooses what costs little.
[[nodiscard]] CallGraphChoice choose_call_graph(const std::vector<CallGraphFacts>& targets,
                                                const CallGraphWishes& wishes);

// For --engine bpf, which reads the C and Python functions of targets itself, unless the user has
// chosen a call graph: of these, perf needs only the kernel's part.
[[nodiscard]] CallGraphChoice choose_for_sampled(const CallGraphWishes& wishes);

// A command that does not run yet.
struct LaunchedFacts {
  std::string name;                         // for messages
  std::optional<bool> frame_pointers = {};  // of its interpreter; nullopt: unknown
};
[[nodiscard]] CallGraphChoice choose_for_launched(const LaunchedFacts& launched,
                                                  const CallGraphWishes& wishes);

// Bytes of stack that perf should copy with each sample to cover the current stacks of TARGET and
// twice as many Python calls: functions called while the trampoline is on use more stack.
[[nodiscard]] std::uint64_t wanted_dump(const CallGraphFacts& target);

// Bytes of stack that perf can copy with each sample, whatever the targets need now: as much as its
// buffers hold for 50 ms at the frequency of WISHES, and as it can write.
[[nodiscard]] std::uint64_t affordable_dump(const CallGraphWishes& wishes);

// Buffer size for perf per processor, at most 8 MiB and half a GiB in total: the default of 512 KiB
// holds a dozen stack dumps, and samples that do not fit are lost. 0: this process may not lock
// more memory than the default (CAP_IPC_LOCK; perf_mmap in the kernel's kernel/events/core.c).
[[nodiscard]] std::uint64_t affordable_buffer();

// The kernel's limit on callchain entries, /proc/sys/kernel/perf_event_max_stack.
[[nodiscard]] std::size_t most_callchain_entries();

}  // namespace pyinject::record
