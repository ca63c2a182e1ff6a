// Which threads are told together: those whose names differ only in digits. Pure.
#pragma once

#include "why/recording.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace pyinject::why {

using Groups = std::map<std::string, std::vector<std::uint32_t>>;  // tids by "worker-*"

// TIMES: for how long each thread existed meanwhile, by tid, in nanoseconds. Those that started or
// ended, with less than 100 ms, are "short threads": few of them have a name, since a snapshot
// finds it.
[[nodiscard]] Groups groups_of(const Recording& recording,
                               const std::map<std::uint32_t, std::uint64_t>& times);

// Without a name: "thread 4711".
[[nodiscard]] std::string name_of(const Recording& recording, std::uint32_t tid);

}  // namespace pyinject::why
