#include "doctor/build_parts.hpp"

#include "bpf/sampler.hpp"
#include "calls/call_trace.hpp"
#include "events/processor_events.hpp"

namespace pyinject::doctor {

std::vector<BuildPart> build_parts() {
  return {{.name = "--engine bpf",
           .built_in = bpf::built_in(),
           .needs = "libbpf, clang and bpftool",
           .cost = "no --engine bpf, top by exact samples, join and why"},
          {.name = "functions",
           .built_in = calls::can_read_calls(),
           .needs = "libtraceevent",
           .cost = "no perf-pyinject functions"},
          {.name = "libperf",
           .built_in = events::built_in(),
           .needs = "libperf",
           .cost = "no why; top reads stacks from outside; -a, -u and --children find new "
                   "processes by polling /proc"}};
}

}  // namespace pyinject::doctor
