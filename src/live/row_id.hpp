// The tables of a live profile, and the numbers of their rows: unique in each table.
#pragma once

#include "sample/stack.hpp"

#include <cstdint>

namespace pyinject::live {

enum class View { kFunctions, kLines, kC, kThreads, kTasks, kProcesses };

inline constexpr unsigned kHalf = 32;

[[nodiscard]] inline std::uint64_t thread_id(std::uint32_t pid, std::uint32_t tid) {
  return std::uint64_t{pid} << kHalf | tid;
}

[[nodiscard]] inline std::uint64_t line_id(const sample::Frame& frame) {
  return frame.code << kHalf | frame.line;
}

}  // namespace pyinject::live
