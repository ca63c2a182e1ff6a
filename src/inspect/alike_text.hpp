// Texts about threads or tasks that do the same: they differ in the addresses of objects at most.
#pragma once

#include <string>
#include <string_view>

namespace pyinject::inspect {

// TEXT with "0x" for each address "0x7f31e8": the same for texts that differ in nothing else.
[[nodiscard]] std::string without_addresses(std::string_view text);

// ONE with "0x..." for each address that OTHER, with the same without_addresses(), has not.
[[nodiscard]] std::string common_text(std::string_view one, std::string_view other);

}  // namespace pyinject::inspect
