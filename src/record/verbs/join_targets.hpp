// The processes that a running perf records.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/targets/scope.hpp"
#include "record/verbs/running_perf.hpp"

#include <vector>

namespace pyinject::record {

struct JoinTargets {
  targets::TargetSet set = targets::TargetSet::of_scope({});
  bool named = false;             // perf was given ROOTS
  std::vector<base::Pid> roots;   // processes passed to perf, or started by it
  std::vector<base::Pid> others;  // that exist, besides them
};

// Warns of processes and threads that perf records without the BPF program, and of ROOTS that its
// user may not record.
[[nodiscard]] JoinTargets targets_of(const RunningPerf& perf, base::Logger& logger);

}  // namespace pyinject::record
