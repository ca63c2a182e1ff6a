#pragma once

#include "bpf/sampler.hpp"

#include <string_view>

namespace pyinject::bpf {

// Why the kernel rejects the BPF program: it returned ERROR, an errno, and libbpf said SAID of
// it, which may be empty.
[[nodiscard]] Unavailable explain_load_failure(int error, std::string_view said);

}  // namespace pyinject::bpf
