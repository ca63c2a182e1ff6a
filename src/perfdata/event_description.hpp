// The feature EVENT_DESC: the events' attributes once more, with their names and ids. Pure.
#pragma once

#include <cstddef>
#include <span>

namespace pyinject::perfdata {

// remove_user_stacks() of each. False: it is damaged.
[[nodiscard]] bool remove_user_stacks_of_all(std::span<std::byte> description);

}  // namespace pyinject::perfdata
