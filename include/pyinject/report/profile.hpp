// A recording as tables, pictures and exports see it: samples with resolved frames. Plain values;
// read_profile() (reader.hpp) makes one from a perf.data file.
//
// For example:
//   std::map<std::string, std::uint64_t> samples_of;  // by innermost function
//   for (const auto& sample : profile.samples) {
//     const auto& frame = profile.frames[profile.nodes[sample.stack].frame];
//     ++samples_of[sample.stack == 0 ? "" : profile.functions[frame.function].name];
//   }
#pragma once

#include "pyinject/sample/states.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pyinject::report {

// kMark: not a function, "[GIL held]", "[task fetch]", "[preempted]", "[truncated: ...]".
enum class Kind : std::uint8_t { kPython, kNative, kKernel, kMark };

// A file with native code: an executable, a library, "[kernel.kallsyms]", "[vdso]".
struct Object {
  std::string path;
  std::string build_id{};  // lower-case hexadecimal; empty: unknown
};

// Names are as recorded, not made printable.
struct Function {
  Kind kind = Kind::kNative;
  std::string name;           // Python: the qualified name, "Cart.add"; empty: no symbol
  std::string file{};         // Python: the source file
  std::uint32_t object = 0;   // native, kernel: index in Profile::objects
  std::uint64_t address = 0;  // native: where the object's ELF file has it, if there is no symbol
};

struct Frame {
  std::uint32_t function = 0;  // index in Profile::functions
  std::uint32_t line = 0;      // 0: unknown
  bool operator==(const Frame&) const = default;
};

// A call stack is a path in a tree from an inner node to the root, node 0, which has no frame.
struct Node {
  std::uint32_t caller = 0;  // index in Profile::nodes, less than the node's own
  std::uint32_t frame = 0;   // index in Profile::frames
};

// What the weight of an event's samples means.
enum class Unit : std::uint8_t {
  kSamples,      // 1 each: the period is a number of events or cycles, or is not recorded
  kNanoseconds,  // the period is time: cpu-clock, task-clock
  kWaits,        // the period is the time that the thread waited: context-switches of --off-cpu
  kCalls,        // the period is the time that a system call took: record --what io, net, locks;
                 // or any other time
  kBytes,        // the period is memory that a system call has mapped: record --what memory
};

// Whether the period is a time.
[[nodiscard]] constexpr bool has_time(Unit unit) {
  return unit == Unit::kNanoseconds || unit == Unit::kWaits || unit == Unit::kCalls;
}
// Whether tables and graphs add up that time instead of counting samples.
[[nodiscard]] constexpr bool weighs_time(Unit unit) {
  return unit == Unit::kWaits || unit == Unit::kCalls;
}

struct Event {
  std::string name;  // as perf prints it: "cpu-clock", "context-switches"
  Unit unit = Unit::kSamples;
};

struct Thread {
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::string name{};     // the thread's, as of its samples; a thread with two names is two Threads
  std::string process{};  // the name of the process's main thread; may be empty
};

struct Sample {
  std::uint64_t time = 0;    // nanoseconds, by the recording's clock
  std::uint64_t period = 1;  // in the event's own unit
  std::uint32_t stack = 0;   // innermost node; 0: no stack
  std::uint32_t thread = 0;  // index in Profile::threads
  std::uint32_t event = 0;   // index in Profile::events
  sample::Does does = sample::Does::kUnknown;
};

// The start of a process by fork.
struct Fork {
  std::uint32_t pid = 0;
  std::uint64_t time = 0;
  std::uint32_t parent = 0;  // its pid
};

// The clock of Sample::time.
struct Clock {
  std::optional<int> id{};                     // as of clock_gettime(); nullopt: perf's own clock
  std::optional<std::uint64_t> wall_offset{};  // to be added for CLOCK_REALTIME, modulo 2^64
};

struct Profile {
  std::vector<Object> objects;
  std::vector<Function> functions;
  std::vector<Frame> frames;
  std::vector<Node> nodes{Node{}};
  std::vector<Event> events;
  std::vector<Thread> threads;
  std::vector<Sample> samples;  // in order of time
  std::vector<Fork> forks{};    // during the recording, in order of pid and time
  Clock clock;

  std::uint64_t lost = 0;  // samples

  // Who read the Python functions, "BPF" or "trampoline"; empty: nobody did, or it is unknown.
  std::string engine;
  // Why the profile may be incomplete, a sentence each: lost samples, damage, names not found.
  std::vector<std::string> notes;
};

}  // namespace pyinject::report
