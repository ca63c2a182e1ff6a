// A Python stack: one value for whatever reads it (the BPF program, the frame walker, a reader from
// outside), and for whoever shows it or adds it to a callchain.
#pragma once

#include "pyinject/sample/states.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace pyinject::sample {

// A Python function. Names are as the program has them: not made printable.
struct Code {
  std::uint64_t number = 0;  // by whoever reads the stacks
  std::string qualname{};
  std::string file{};
  std::uint32_t first_line = 0;  // 0: unknown
};

struct Frame {
  std::uint64_t activation = 0;  // identity of the frame: its address; 0: unknown
  std::uint64_t code = 0;        // Code::number; 0: its description was dropped for lack of room
  std::uint32_t line = 0;        // 0: unknown
  // The outermost of the frames that share one C activation of the evaluator (the previous frame is
  // an entry frame).
  bool outermost = false;
  Does does = Does::kUnknown;  // only of the innermost one
  bool operator==(const Frame&) const = default;
};

// Frame::code of the garbage collector. Its caller is the function in which it started, or, inside
// of it, the innermost function that it has called (a finalizer).
inline constexpr std::uint32_t kGarbageCollector = 0xfffffffdU;
// Its name; it has no file.
inline constexpr const char* kGarbageCollectorName = "[gc]";

// Frame::code of the start of a greenlet: the frames behind it are those of its parent.
inline constexpr std::uint32_t kGreenlet = 0xfffffffcU;
// Its name; it has no file.
inline constexpr const char* kGreenletName = "[greenlet]";

enum class NativeEnd : std::uint8_t {
  kNotRead,  // the process has no tables
  kRoot,
  kLimit,       // more than 2048 functions
  kUnmapped,    // the last address is in no known mapping: scan the process again
  kNoRule,      // no unwind information, and no frame pointer
  kUnreadable,  // the stack is not in memory
  kBroken,      // the stack does not grow towards its root
};

struct Stack {
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::uint64_t time = 0;  // of the sample, by the event's clock, in nanoseconds
  // Innermost first; complete from the outermost frame up to some inner one.
  std::vector<Frame> frames = {};
  // The frames of the suspended greenlets that are the parents of the one that runs, innermost
  // first: those of each follow a kGreenlet. Empty: unknown, or no greenlet runs. During a switch,
  // they may be those of another one.
  std::vector<Frame> parents = {};
  // All frames of that instant are known; but for PID, TID and TIME, the members below are set for
  // such stacks only.
  bool whole = false;
  bool truncated = false;   // frames at the root are missing: more than 512
  bool unreadable = false;  // the same: they could not be read
  bool ungrouped = false;   // the frames do not tell which is the outermost of a group
  Gil gil = Gil::kUnknown;  // if requested
  std::string task = {};    // name of the running asyncio task, if requested; empty: none
  bool added = true;        // false: only NATIVE is read of this process
  // Program counters, innermost first; for callers, of the last byte of the call instruction.
  std::vector<std::uint64_t> native = {};
  NativeEnd native_end = NativeEnd::kNotRead;
  std::uint64_t address = 0;  // of the instruction that ran; 0: in the kernel
  bool python_thread = true;  // false: a C thread unknown to CPython
  bool by_clock = false;      // TIME is from CLOCK_MONOTONIC, within a few microseconds
  // Of a tracepoint or probe: TIME is from CLOCK_MONOTONIC, shortly before the samples of this hit.
  bool traced = false;

  [[nodiscard]] Does does() const { return frames.empty() ? Does::kUnknown : frames.front().does; }
};

}  // namespace pyinject::sample
