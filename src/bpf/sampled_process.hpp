#pragma once

#include "bpf/sampler_records.h"
#include "python/layout/frame_layout.hpp"

#include <optional>

namespace pyinject::bpf {

// What the BPF program needs to know about a process; nullopt: frames or code objects exceed what
// the program reads of them.
[[nodiscard]] std::optional<sampled_process> process_of(const python::FrameLayout& from);

// What it needs to know about CPython, for all versions.
[[nodiscard]] sampled_python every_python();

}  // namespace pyinject::bpf
