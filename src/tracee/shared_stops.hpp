// The open stops of this process, readable by a child that is forked later, which can thus detect a
// stop that does not end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace pyinject::tracee {

// Serial numbers; 0: empty slot. A serial number is never reused.
using OpenStops = std::array<std::uint64_t, 64>;

// Maps the page in which all later stops of this process are recorded. Later calls have no effect.
// Throws base::SystemError.
void share_stops();
// For a child that was forked after share_stops(): its own stops are not recorded.
void keep_own_stops_private();
// The stops of the process that called share_stops(). More than 64 at a time are not recorded.
[[nodiscard]] OpenStops shared_stops();

}  // namespace pyinject::tracee
