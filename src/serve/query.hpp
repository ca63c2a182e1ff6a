// The query of a URL, "seconds=5&pid=4711".
#pragma once

#include "serve/profile_maker.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace pyinject::serve {

// "Event" as it is called in a query and in metrics: "cpu", "offcpu", "alloc".
[[nodiscard]] std::string_view name(Event event);

// TEXT without percent-encoding; nullopt: it is malformed or contains a NUL.
[[nodiscard]] std::optional<std::string> decode_url(std::string_view text);

// Without seconds= the length is Go's, 30 s, or MOST if that is less. A parameter that is unknown,
// given twice or out of range is a Problem.
[[nodiscard]] std::variant<ProfileRequest, Problem> parse_query(std::string_view query,
                                                                std::chrono::seconds most);

}  // namespace pyinject::serve
