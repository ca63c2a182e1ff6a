// Options for the post-processing of a recorded file. The options of every step that leads there,
// from the command line on, contain this struct.
//
// For example:
//   record::RecordPlan plan;
//   plan.flags.lines = true;
//   plan.flags.off_cpu = true;
#pragma once

#include "pyinject/version.hpp"

#include <cstdint>
#include <vector>

namespace pyinject::weave {

// The tracepoints of a system call, by their ids in tracefs: syscalls:sys_enter_NAME,
// sys_exit_NAME.
struct TimedCall {
  std::uint64_t enter = 0;
  std::uint64_t exit = 0;
  bool operator==(const TimedCall&) const = default;
};

// The same of a call that maps memory or gives it back: mmap, munmap, mremap, brk, mprotect. Or the
// event of an allocator's static probe, which has no EXIT; it fetches, as 64-bit words, the address
// of the block, and of kAllocate its size and its weight: the bytes that it stands for.
struct MemoryCall {
  enum class Kind : std::uint8_t { kMap, kUnmap, kRemap, kBreak, kProtect, kAllocate, kFree };
  Kind kind{};
  std::uint64_t enter = 0;
  std::uint64_t exit = 0;
  bool operator==(const MemoryCall&) const = default;
};

struct WeaveFlags {
  // Append the line to the names of Python frames: "py::f:file:12".
  bool lines = false;
  // Add a frame at the root of complete Python stacks (BPF engine) that shows the GIL state of the
  // thread, and one with the name of the running asyncio task.
  bool gil = false;
  bool tasks = false;
  // Also sample threads that stop running. The period of such a sample is the time in nanoseconds
  // until the thread runs again; needs the records of perf's --switch-events.
  bool off_cpu = false;
  // Samples of ENTER get the time until the thread leaves the call as period, in nanoseconds; those
  // of EXIT are dropped. Only of events that sample each hit; of several events the last one.
  std::vector<TimedCall> timed_calls = {};
  // Samples of ENTER get the number of bytes as period that the call has mapped and that are still
  // mapped at the end, those of kAllocate the weight of the block if it is not freed; those without
  // such bytes are dropped, as are those of EXIT and kFree. Likewise only of events that sample
  // each hit.
  std::vector<MemoryCall> memory_calls = {};
  // Reduce callchains with Python functions to these, so that the innermost one is where the thread
  // was: its Self column in perf report. Other callchains stay.
  bool python_only = false;
  // Keep perf's own file as NAME.raw.
  bool keep_raw = false;
};

}  // namespace pyinject::weave
