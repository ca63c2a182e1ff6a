// The feature BUILD_ID: a sequence of struct build_id_event. Pure.
#pragma once

#include "perfdata/event.hpp"
#include "perfdata/input.hpp"

#include <cstddef>
#include <vector>

namespace pyinject::perfdata {

// The entries of the TABLE, up to the damage, if damaged.
[[nodiscard]] std::vector<BuildId> parse_build_ids(Bytes table);

// INTO gets the whole entry.
void make_build_id(const BuildId& id, std::vector<std::byte>& into);

}  // namespace pyinject::perfdata
