// The tables, in the order in which they are printed. Each function throws base::Error if part of
// its table cannot be measured or if a target of this tool stops working.
#pragma once

#include "measure.hpp"

namespace pyinject::bench {

void pauses(const Effort& effort);    // how long a target is stopped
void rivals(const Effort& effort);    // the same for rivals
void speeds(const Effort& effort);    // before, during and after an activation
void calls(const Effort& effort);     // cost of the trampoline
void engines(const Effort& effort);   // cost of a recording, per engine
void tools(const Effort& effort);     // cost of the tool itself
void watching(const Effort& effort);  // many processes and new ones
void growth(const Effort& effort);    // leftovers of many sessions

}  // namespace pyinject::bench
