// What is unusual in a recording, besides the verdict.
#pragma once

#include "why/accounting.hpp"
#include "why/recording.hpp"
#include "why/report.hpp"
#include "why/totals.hpp"

namespace pyinject::why {

// Adds to Report::unusual; growing memory to the verdict, too. REPORT: with its cause.
void add_unusual(const Recording& recording, const Accounts& accounts, const Totals& totals,
                 Report& report);

}  // namespace pyinject::why
