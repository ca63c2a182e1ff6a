// Requests that cannot be carried out, and are withdrawn.
#pragma once

#include "pyinject/base/pid.hpp"
#include "support/attach.hpp"

#include <chrono>

namespace pyinject::test {

// Asks PID for an activation and gives it up when it has been asked for so long; so it is asked
// also where it takes long to stop it. The refusal tells how long that was. Throws base::Error when
// it was activated.
[[nodiscard]] python::Refusal withdrawn(Attach& attach, base::Pid pid,
                                        std::chrono::milliseconds asked = std::chrono::milliseconds{
                                            300});

}  // namespace pyinject::test
