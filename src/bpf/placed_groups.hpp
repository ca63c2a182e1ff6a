// The frames of a thread that runs Python in several interpreters.
#pragma once

#include "bpf/sampler_records.h"

#include <span>
#include <vector>

namespace pyinject::bpf {

// Removes the places and ends of states from WORDS (enum sampler_word), and orders the groups of
// all interpreters as they call each other, the innermost first. If an interpreter lacks outer
// groups, it is unknown where they belong: the result ends with that interpreter's last known
// group.
[[nodiscard]] std::vector<sampled_frame> in_order_of_places(std::span<const sampled_frame> words);

}  // namespace pyinject::bpf
