// Parts of texts that all views share.
#pragma once

#include "pyinject/report/profile.hpp"
#include "report/view_options.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace pyinject::report {

// As on the command line.
[[nodiscard]] std::string_view name_of(View view);
// "3.82 s": three digits and a unit.
[[nodiscard]] std::string seconds_text(std::uint64_t nanoseconds);
// A weight: seconds of waits and calls, bytes, a number of samples.
[[nodiscard]] std::string weight_text(Unit unit, std::uint64_t weight);
// "/srv/shop.py:7", of the standard library "json/decoder.py:337". LINE: 0: none.
[[nodiscard]] std::string place_text(std::string_view file, std::uint32_t line);
[[nodiscard]] std::string percent_text(std::uint64_t part, std::uint64_t all);
// "ns", "bytes" or "samples": the unit of weights in JSON.
[[nodiscard]] std::string_view unit_text(Unit unit);
// "cpu-clock: 12 samples" or "waits: 3.00 ms in all", with a line break.
[[nodiscard]] std::string title_text(const std::string& event, Unit unit, std::uint64_t weight);
// Printable, and cut in the middle: both ends of a qualified name say something.
[[nodiscard]] std::string short_name(std::string_view name);
// A value of RFC 4180.
[[nodiscard]] std::string csv_text(std::string_view text);

}  // namespace pyinject::report
