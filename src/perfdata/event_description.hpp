// The feature EVENT_DESC: another copy of the events' attributes, with names and ids. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace pyinject::perfdata {

// Names of the events, in the order of the attributes. Up to the damage, if damaged.
[[nodiscard]] std::vector<std::string> event_names(std::span<const std::byte> description);

// Calls CHANGE with the attributes of each event. False: damaged.
[[nodiscard]] bool change_all(std::span<std::byte> description,
                              const std::function<void(std::span<std::byte> attributes)>& change);

}  // namespace pyinject::perfdata
