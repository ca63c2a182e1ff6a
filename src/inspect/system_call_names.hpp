// Names of system calls.
#pragma once

#include <string_view>

namespace pyinject::inspect {

// Empty: unknown.
[[nodiscard]] std::string_view system_call_name(long number);

}  // namespace pyinject::inspect
