// The perf events that another process has open.
#pragma once

#include "bpf/sampler.hpp"
#include "pyinject/base/pid.hpp"

#include <functional>

namespace pyinject::bpf {

// PUT is called with a copy of each event's descriptor, which it may not keep; it returns 0 or the
// errno of what it has refused. Needs the right to ptrace PERF.
[[nodiscard]] Sampler::Attached to_each_event(base::Pid perf, const std::function<int(int)>& put);

}  // namespace pyinject::bpf
