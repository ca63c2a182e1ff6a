#include "pyinject/base/error.hpp"

#include <system_error>

namespace pyinject::base {

std::string errno_text(int code) { return std::generic_category().message(code); }

SystemError::SystemError(const std::string& step, int code)
    : Error{step + ": " + errno_text(code)}, code_{code} {}

}  // namespace pyinject::base
