// perf_event_attr in the sizes of all perf versions. Pure: bytes in, values out.
#pragma once

#include "perfdata/input.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace pyinject::perfdata {

// The size stored in the attributes at the start of BYTES; nullopt: they are damaged or truncated.
[[nodiscard]] std::optional<std::size_t> attributes_size(Bytes bytes);

// RAW, padded with zeros or truncated.
[[nodiscard]] perf_event_attr to_attributes(Bytes raw);

// Removes user registers and user stacks from RAW if samples have both.
void remove_user_stacks(std::span<std::byte> raw);

// Clears the bits of deferred callchains in RAW.
void remove_deferral(std::span<std::byte> raw);

// Adds the period to RAW if TAKES_PERIOD, which gets an event with these attributes only.
void add_period(std::span<std::byte> raw, const std::function<bool(const Event&)>& takes_period);

// Why records of these events cannot be parsed; nullopt: they can be.
[[nodiscard]] std::optional<UnsupportedFile> check_joinable(const std::vector<Event>& events);

}  // namespace pyinject::perfdata
