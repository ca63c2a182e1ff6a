// perf_event_attr as perfs of any age write it. Pure: bytes in, values out.
#pragma once

#include "perfdata/input.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace pyinject::perfdata {

// The length that the attributes at the beginning of BYTES say they have; nullopt: they are damaged
// or not all there.
[[nodiscard]] std::optional<std::size_t> attributes_size(Bytes bytes);

// RAW filled up with zeros, or cut.
[[nodiscard]] perf_event_attr to_attributes(Bytes raw);

// Where samples have both, user registers and stacks are taken out of what RAW asks for.
void remove_user_stacks(std::span<std::byte> raw);

// Where each context switch is sampled, RAW asks for the period.
void add_switch_periods(std::span<std::byte> raw);

// Why records of these events cannot be taken apart; nullopt when they can.
[[nodiscard]] std::optional<UnsupportedFile> check_joinable(const std::vector<Event>& events);

}  // namespace pyinject::perfdata
