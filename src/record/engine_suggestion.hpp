// Names the BPF engine where it suits the targets of a recording by the trampoline better.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/python/target.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace pyinject::record {

// What makes the trampoline a burden for a target.
struct TrampolineBurden {
  base::Pid pid;
  python::Version version;
  std::size_t python_threads = 0;  // that run Python functions
  std::size_t forked = 0;          // its running children that have not exec'ed
};

// One line about the first of TARGETS that --engine bpf suits better; empty: there is none. Pure.
[[nodiscard]] std::string suggest_bpf(std::span<const TrampolineBurden> targets);

// Sets `forked` of each of BURDENS, which belong to TARGETS in the same order. Reads /proc.
void count_forked(std::span<const python::Target> targets, std::vector<TrampolineBurden>& burdens);

}  // namespace pyinject::record
