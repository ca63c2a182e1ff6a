// Results of post-processing a recording.
//
// For example:
//   record::RecordSummary summary;
//   for (const auto& file : summary.woven) {
//     std::cout << file.path << ": " << file.summary.stacks.all() << " samples\n";
//   }
#pragma once

#include "pyinject/perfdata/stack_counts.hpp"
#include "pyinject/weave/symbol_image.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pyinject::weave {

// An image to be stored where perf finds it.
struct NamedImage {
  std::string path;  // as recorded in the file
  SymbolImage image;
};

// Why requested off-CPU times are not in the file.
enum class NoOffCpu : std::uint8_t {
  kNone,             // they are in the file
  kNoSwitches,       // no context switch records: periods are unchanged
  kOnlyInUserSpace,  // event only counts in user space, where no thread is switched out: no samples
};

// The per-process limit that was reached.
enum class Limit : std::uint8_t {
  kUnwindSteps,     // COUNT: truncated stacks
  kUnwindTables,    // COUNT: truncated stacks
  kForkedMappings,  // COUNT: processes of the family that start without mappings
  kPerfMap,         // COUNT: known names of the process
  kLines,           // COUNT: functions without lines
  kNames,           // COUNT: functions, or activations of functions, without names
  kPythonStacks,    // COUNT: stacks without Python functions
  kNativeStacks,    // COUNT: stacks without C functions that BPF has unwound
  kDeferredChains,  // COUNT: stacks without user parts
};

// Data of a process that was dropped because the process reached a limit (base/budget.hpp).
struct Dropped {
  std::uint32_t pid = 0;
  std::string command;  // empty: unknown
  Limit limit = Limit::kUnwindSteps;
  std::uint64_t count = 0;
};
// "pid 4711 (x): 970 stacks are cut: ..."
[[nodiscard]] std::string phrase(const Dropped& dropped);

struct WeaveSummary {
  std::uint64_t samples = 0;
  std::uint64_t unwound = 0;           // stacks unwound from registers and the stack dump
  std::uint64_t cut = 0;               // of these: the stack dump was too short
  std::uint64_t no_information = 0;    // of these: a file without unwind tables
  std::uint64_t broken = 0;            // of these: no stack
  std::uint64_t by_frame_pointer = 0;  // of these: partly by frame pointers, for lack of tables
  std::uint64_t no_user_part = 0;      // samples whose deferred user part was not found
  std::uint64_t extended = 0;          // samples that got Python frames
  std::uint64_t python_only = 0;       // of these: the interleaved C functions are unknown
  std::uint64_t python_only_cut = 0;   // of these: the stack dump was too short
  std::uint64_t truncated = 0;         // of these: frames are missing at the root
  std::uint64_t without_record = 0;    // samples without a record, despite complete Python stacks
  std::uint64_t exiting = 0;           // samples of threads that have no tid any more, and no stack
  std::uint64_t of_another_time = 0;   // of these: no stack was read at that time
  perfdata::StackCounts stacks;        // of the processes that were recorded
  std::uint64_t reduced = 0;           // callchains of which only the Python functions are left
  std::uint64_t off_cpu = 0;           // samples whose period is their off-CPU time
  // Of these: added for threads that were waiting before the recording (or file) started.
  std::uint64_t waits = 0;
  std::uint64_t waits_unknown = 0;   // such threads with an unknown end of the wait
  std::uint64_t timed_calls = 0;     // samples whose period is the duration of their system call
  std::uint64_t lasting_calls = 0;   // of these: until the recording ended
  std::uint64_t untimed_calls = 0;   // samples of such calls with an unknown end: the period is 1
  std::uint64_t mapped_bytes = 0;    // by the calls of WeaveFlags::memory_calls
  std::uint64_t kept_bytes = 0;      // of these: still mapped at the end
  std::uint64_t young_bytes = 0;     // likewise, but mapped in the last tenth of the time: not kept
  std::uint64_t unknown_breaks = 0;  // calls of brk whose length is unknown: the first of a process
  bool memory_calls_cut = false;     // there were too many: the later ones are missing
  std::uint64_t allocated_bytes = 0;     // as the allocator tells: of MemoryCall::Kind::kAllocate
  std::uint64_t kept_blocks_bytes = 0;   // of these: not freed at the end
  std::uint64_t young_blocks_bytes = 0;  // likewise, but allocated in the last tenth of the time
  NoOffCpu no_off_cpu = NoOffCpu::kNone;
  std::uint64_t limited = 0;     // callchains truncated by perf or by the file format
  std::uint64_t unreadable = 0;  // damaged samples: not in the output
  std::uint64_t unwanted = 0;    // samples of other processes: not in the output
  std::uint64_t map_writes = 0;  // samples of writing perf maps: not in the output
  // Such samples may be in the output, because callchains by frame pointers do not show the writes.
  bool map_writes_hidden = false;
  // Non-executable mappings: not in the output, since no sample has a data address. perf requests
  // them whenever stacks are dumped.
  std::uint64_t data_mappings = 0;
  std::uint64_t largest_copy = 0;  // largest stack dump requested for a sample, in bytes
  std::uint64_t losses = 0;   // times that the kernel dropped records because perf was too slow
  std::uint64_t lost = 0;     // samples missing because of that
  bool by_frequency = false;  // perf chose the period of a sampling event (-F)
  bool by_period = false;     // an event has a fixed period (-c)
  std::size_t longest = 0;    // entries of the longest callchain
  std::uint64_t bytes_before = 0;
  std::uint64_t bytes_after = 0;
  std::string left_over;  // why the directory that was replaced could not be removed; empty: it was
  std::string damage;     // the file's records end prematurely; empty: no damage
  std::vector<NamedImage> images;
  std::size_t images_left_out = 0;  // of these: not in the file itself, which has too many names
  std::vector<Dropped> dropped;     // largest counts first
};

}  // namespace pyinject::weave
