// Which call graph option suits the targets when the user has chosen none. Pure.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/python/target.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pyinject::session {

struct CallGraphFacts {
  base::Pid pid;
  python::Version version;
  bool frame_pointers = false;
  std::optional<std::uint64_t> stack_bytes;  // largest use of a thread; unknown: not readable
};

struct CallGraphChoice {
  std::vector<std::string> arguments;  // for perf record
  std::string note;                    // what will be missing; empty: nothing
  std::uint64_t dump_bytes = 0;        // copied with each sample; 0: none
};

// LIBUNWIND: perf unwinds by it; by libdw it stops in front of a trampoline.
[[nodiscard]] CallGraphChoice choose_call_graph(const std::vector<CallGraphFacts>& targets,
                                                bool libunwind);

// Bytes of stack that perf is to copy with each sample, so that USED bytes are in it.
[[nodiscard]] std::uint64_t dump_size(std::uint64_t used);

}  // namespace pyinject::session
