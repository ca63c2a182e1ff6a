// The cause in the first line, and what is unusual. Pure.
#pragma once

#include "why/report.hpp"

#include <vector>

namespace pyinject::why {

// Sets the cause, the verdict and the next command of REPORT, whose groups and holders are
// complete.
void judge(const Recording& recording, const Accounts& accounts,
           const std::vector<LoopBlock>& blocks, Report& report);

}  // namespace pyinject::why
