#pragma once

#include "bpf/sampler.hpp"

#include <string_view>

namespace pyinject::bpf {

// Whether the kernel is locked down so that BPF programs may not read memory.
[[nodiscard]] bool locked_down();

// Explains why the kernel rejected the BPF program. ERROR: an errno; SAID: libbpf's messages, may
// be empty.
[[nodiscard]] Unavailable explain_load_failure(int error, std::string_view said);

}  // namespace pyinject::bpf
