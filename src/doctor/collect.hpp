// Collects facts about the machine, read-only; probes end before collect() returns.
#pragma once

#include "doctor/facts.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/perf/perf_locator.hpp"

#include <vector>

namespace pyinject::doctor {

[[nodiscard]] Facts collect(const perf::PerfSearch& search, const std::vector<base::Pid>& pids);

// The parts of it.
[[nodiscard]] PerfFacts collect_perf(const perf::PerfSearch& search);
[[nodiscard]] KernelFacts collect_kernel();
[[nodiscard]] OwnFacts collect_own();
[[nodiscard]] std::vector<ProcessFacts> collect_processes(const std::vector<base::Pid>& pids);

}  // namespace pyinject::doctor
