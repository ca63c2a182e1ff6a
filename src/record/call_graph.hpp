// Which call graph option suits the targets, and what will be missing with the user's own. Pure but
// for most_callchain_entries().
#pragma once

#include "perf/record_options.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/python/target.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pyinject::session {

struct CallGraphFacts {
  base::Pid pid;
  python::Version version;
  bool frame_pointers = false;
  std::string extension_without = {};  // a module without frame pointers; empty: none
  // Largest use of a thread, now; nullopt: not readable.
  std::optional<std::uint64_t> stack_bytes = {};
  std::size_t python_calls = 0;  // the deepest Python stack of a thread, now
};

struct CallGraphWishes {
  std::optional<perf::ChosenCallGraph> chosen = {};  // by the user
  bool frequency_chosen = false;
  std::optional<std::uint64_t> frequency = {};  // samples a second, where one was chosen
  std::size_t most_entries = 127;               // kernel.perf_event_max_stack
  std::uint64_t buffer_bytes = 0;  // for each processor, when stacks are copied; 0: perf's default
};

struct CallGraphChoice {
  std::vector<std::string> arguments;  // for perf record; empty: the user has chosen
  std::string note;                    // one line: what was chosen and why, or what will be missing
  bool complete = true;                // as far as can be told no stack will be cut
};

// Whether the choice takes TARGET's stack_bytes, for which it has to be stopped once.
[[nodiscard]] bool needs_stack_use(const CallGraphFacts& target, const CallGraphWishes& wishes);

// None yet: what costs little.
[[nodiscard]] CallGraphChoice choose_call_graph(const std::vector<CallGraphFacts>& targets,
                                                const CallGraphWishes& wishes);

// With --engine bpf: Python's own frames are whole with any call graph that has callchains. Copied
// stacks, to show the C functions between them, are for the user to choose: they cost much more
// than all the rest.
[[nodiscard]] CallGraphChoice choose_for_sampled(const std::vector<CallGraphFacts>& targets,
                                                 const CallGraphWishes& wishes);

// Of a command that does not run yet.
struct LaunchedFacts {
  std::string name;                         // what people call it
  std::optional<bool> frame_pointers = {};  // of its interpreter; nullopt: not known
};
[[nodiscard]] CallGraphChoice choose_for_launched(const LaunchedFacts& launched,
                                                  const CallGraphWishes& wishes);

// Bytes of stack that perf is to copy with each sample, so that the stacks of TARGET are in it now
// and when it has called as many Python functions again: those that are called while the trampoline
// is on take more of it.
[[nodiscard]] std::uint64_t wanted_dump(const CallGraphFacts& target);

// Bytes of stack that perf can copy with each sample, whatever the targets need now: as many as its
// buffers hold for a twentieth of a second at the frequency of WISHES, and as it can write.
[[nodiscard]] std::uint64_t affordable_dump(const CallGraphWishes& wishes);

// What perf may take for each processor, 8 MiB at most and half a GiB for all: its default of 512
// KiB holds a dozen copied stacks, and what does not fit is lost. 0: this process may not lock more
// memory than the default (CAP_IPC_LOCK; perf_mmap in the kernel's kernel/events/core.c).
[[nodiscard]] std::uint64_t affordable_buffer();

// The kernel's limit for a callchain, /proc/sys/kernel/perf_event_max_stack.
[[nodiscard]] std::size_t most_callchain_entries();

}  // namespace pyinject::session
