// The state of a thread in a sample: one vocabulary for whatever reads it, and for whoever shows
// it.
//
// For example:
//   const auto snapshot = inspect::take_snapshot(pid, &target);
//   const bool waits = snapshot && std::ranges::any_of(snapshot->threads, [](const auto& thread) {
//     return thread.gil == sample::Gil::kWaitedFor;
//   });
#pragma once

#include "pyinject/version.hpp"

#include <cstdint>

namespace pyinject::sample {

enum class Gil : std::uint8_t { kUnknown, kNone, kHeld, kWaitedFor };

// What the innermost Python function was interpreted to do. C code below it was called by it
// (kCall), or belongs to the interpreter: arithmetic, look-up of attributes, allocation
// (kByteCode).
enum class Does : std::uint8_t { kUnknown, kByteCode, kCall };

}  // namespace pyinject::sample
