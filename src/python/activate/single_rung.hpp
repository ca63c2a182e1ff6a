// For tests of one rung of the ladder (docs/architecture.md).
#pragma once

#include "pyinject/python/injector.hpp"

#include <memory>

namespace pyinject::python {

// As make_injector(), but requests an activation only by RUNG, or refuses it with
// kActivationFailed.
[[nodiscard]] std::unique_ptr<Injector> make_injector_with(Mechanism rung);

}  // namespace pyinject::python
