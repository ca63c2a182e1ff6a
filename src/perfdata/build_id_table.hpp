// The feature BUILD_ID: struct build_id_event, one after another. Pure.
#pragma once

#include "perfdata/output.hpp"

#include <cstddef>
#include <vector>

namespace pyinject::perfdata {

// INTO is given the whole line.
void make_build_id(const BuildId& id, std::vector<std::byte>& into);

}  // namespace pyinject::perfdata
