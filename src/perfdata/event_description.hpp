// The feature EVENT_DESC: the events' attributes once more, with their names and ids. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace pyinject::perfdata {

// CHANGE is given each one's attributes. False: it is damaged.
[[nodiscard]] bool change_all(std::span<std::byte> description,
                              const std::function<void(std::span<std::byte> attributes)>& change);

}  // namespace pyinject::perfdata
