// The tables, in the order in which they are printed. Each throws base::Error when something of it
// cannot be measured or when one of our targets does not go on.
#pragma once

#include "measure.hpp"

namespace pyinject::bench {

void pauses(const Effort& effort);    // how long a target stands still
void rivals(const Effort& effort);    // the same of others
void speeds(const Effort& effort);    // before, while it is on, after
void calls(const Effort& effort);     // what the trampoline costs
void engines(const Effort& effort);   // what a recording costs, by each engine
void tools(const Effort& effort);     // what the tool takes
void watching(const Effort& effort);  // many processes, and new ones
void growth(const Effort& effort);    // what many sessions leave

}  // namespace pyinject::bench
