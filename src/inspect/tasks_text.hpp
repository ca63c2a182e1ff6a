// The tasks of asyncio as text: a tree, each task below the one that awaits it. Pure.
#pragma once

#include "inspect/frame_text.hpp"
#include "pyinject/inspect/snapshot.hpp"

#include <string>

namespace pyinject::inspect {

// Those of each loop, after a line about it. ALL: else the first hundred of each process.
[[nodiscard]] std::string tasks_text(const ProcessSnapshot& process, const FrameText& functions,
                                     bool all);

}  // namespace pyinject::inspect
