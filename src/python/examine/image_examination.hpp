// Examines a process that does not run any more.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/python/target.hpp"
#include "python/layout/process_image.hpp"

namespace pyinject::python {

// Finds the interpreter of PID in IMAGE and checks whether its stacks can be read, as a detector
// for Purpose::kObserve does with a running process.
[[nodiscard]] Detection detect_in(const ProcessImage& image, base::Pid pid);

}  // namespace pyinject::python
