// The registers of threads that are blocked in the kernel, without a stop.
#pragma once

#include "bpf/entry_registers.h"
#include "pyinject/base/pid.hpp"

#include <map>

namespace pyinject::bpf {

// Registers at each thread's latest kernel entry; stale for threads now in user space. Loads a BPF
// program and removes it. Needs CAP_BPF and CAP_PERFMON, Linux 5.15 with BTF; empty: they are
// missing, or this build has no BPF.
using EntryRegisters = std::map<base::Tid, entry_registers>;
[[nodiscard]] EntryRegisters read_entry_registers(base::Pid pid);

}  // namespace pyinject::bpf
