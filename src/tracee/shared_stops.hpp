// The stops of this process that have begun and not ended, readable by a child that was forked
// later: it can tell a stop that does not end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace pyinject::tracee {

// Serial numbers, 0 where there is none. A serial number is never used twice.
using OpenStops = std::array<std::uint64_t, 64>;

// Maps the page in which all later stops of this process are noted. Later calls do nothing. Throws
// base::SystemError.
void share_stops();
// In a child that was forked after share_stops(): its own stops are not noted.
void keep_own_stops_private();
// Of the process that called share_stops(). More than 64 at a time are not noted.
[[nodiscard]] OpenStops shared_stops();

}  // namespace pyinject::tracee
