// Suspended greenlets as text: those with equal stacks together. Pure.
#pragma once

#include "inspect/snapshot.hpp"

#include <string>

namespace pyinject::inspect {

// The most frequent stacks first, those of event loops (gevent's Hub) last. ALL: else the first
// hundred stacks.
[[nodiscard]] std::string greenlets_text(const ProcessSnapshot& process, bool all);

}  // namespace pyinject::inspect
