// Requests that cannot be carried out and are withdrawn.
#pragma once

#include "pyinject/base/pid.hpp"
#include "support/attach.hpp"

#include <chrono>

namespace pyinject::test {

// Requests an activation of PID and cancels it once the request has existed for ASKED, however long
// the stop takes. The refusal must report a plausible waiting time. Throws base::Error if the
// activation succeeded.
[[nodiscard]] python::Refusal withdrawn(Attach& attach, base::Pid pid,
                                        std::chrono::milliseconds asked = std::chrono::milliseconds{
                                            300});

}  // namespace pyinject::test
