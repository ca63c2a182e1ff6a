// Command lines as documents show them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pyinject::test {

// The simple commands of LINE ("a | b && c"), each split into words: quotes, backslashes and
// "$(...)" as in a shell, comments and redirections omitted.
[[nodiscard]] std::vector<std::vector<std::string>> shell_commands(std::string_view line);

}  // namespace pyinject::test
