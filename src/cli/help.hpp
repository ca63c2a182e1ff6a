// The texts of --help; each fits a terminal of 80 columns.
#pragma once

#include "cli/command_line.hpp"

#include <string_view>

namespace pyinject::cli {

[[nodiscard]] std::string_view help_text(Verb verb);

}  // namespace pyinject::cli
