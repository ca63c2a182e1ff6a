// Finds the perf events that another process has open.
#pragma once

#include "bpf/sampler.hpp"
#include "pyinject/base/pid.hpp"

#include <functional>

namespace pyinject::bpf {

// Calls PUT with a duplicate of each event's descriptor, which PUT must not keep; PUT returns 0 or
// the errno of its failure, and may count in the result. Needs permission to ptrace PERF.
[[nodiscard]] Sampler::Attached to_each_event(
    base::Pid perf, const std::function<int(int, Sampler::Attached&)>& put);

}  // namespace pyinject::bpf
