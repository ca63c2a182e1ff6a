#pragma once

#include "pyinject/bpf/sampler.hpp"

#include <string_view>

namespace pyinject::bpf {

// Why the kernel does not take the program: it returned ERROR, an errno, and libbpf said SAID of
// it, which may be empty.
[[nodiscard]] Unavailable why_not_loaded(int error, std::string_view said);

}  // namespace pyinject::bpf
