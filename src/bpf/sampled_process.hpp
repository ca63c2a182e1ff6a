#pragma once

#include "bpf/sampler_records.h"
#include "python/layout/frame_layout.hpp"

#include <optional>

namespace pyinject::bpf {

// What the program has to know of a process; nullopt: its frames or code objects are larger than
// what the program reads of them.
[[nodiscard]] std::optional<sampled_process> process_of(const python::FrameLayout& from);

// What it has to know of CPython, whichever the process has.
[[nodiscard]] sampled_python every_python();

}  // namespace pyinject::bpf
