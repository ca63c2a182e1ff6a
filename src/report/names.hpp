// How functions and events are called in all formats.
#pragma once

#include "pyinject/report/profile.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace pyinject::report {

// Stands for the Python function of a stack that has none, in tables.
inline constexpr std::string_view kNoFunctionName = "(no Python function)";

// The name of FUNCTION; "[libc.so.6]" for native code without a symbol, "[unknown]" for code in no
// file. Not made printable.
[[nodiscard]] std::string name_of(const Profile& profile, const Function& function);
// Its source file, or the file with its code.
[[nodiscard]] std::string file_of(const Profile& profile, const Function& function);
// The name of the Python function that stands for the garbage collector; it has no file.
inline constexpr const char* kGarbageCollector = "[gc]";
[[nodiscard]] bool is_garbage_collector(const Function& function);
// The mark at the root of a greenlet; functions below it are those of its parents, which do not
// run.
[[nodiscard]] bool is_start_of_greenlet(const Function& function);
// The events, in bytes, that stand for those of `record --what memory`.
inline constexpr const char* kMappedMemory = "memory";   // by system calls
inline constexpr const char* kAllocatedMemory = "heap";  // blocks that the allocator samples
// What SAMPLE counts in tables of its event: 1, the nanoseconds of a wait or of a system
// call, or bytes.
[[nodiscard]] std::uint64_t weight_of(const Profile& profile, const Sample& sample);

}  // namespace pyinject::report
