// Which line of a stack stands for it. Pure.
#pragma once

#include "why/recording.hpp"
#include "why/report.hpp"

#include <cstdint>
#include <string_view>

namespace pyinject::why {

// The innermost line outside of the interpreter's own modules; without one, the innermost line.
[[nodiscard]] Line line_of(const Recording& recording, std::uint32_t stack);
// The same, as text.
[[nodiscard]] Spent spent_at(const Recording& recording, std::uint32_t stack, std::uint64_t time);

}  // namespace pyinject::why
