// What became of a recording whose stacks were completed.
#pragma once

#include "pyinject/weave/symbol_image.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pyinject::weave {

// An image to be kept where perf finds it.
struct NamedImage {
  std::string path;  // as the file says it
  SymbolImage image;
};

// Why times off the processor that were asked for are not in the file.
enum class NoOffCpu : std::uint8_t {
  kNone,             // they are
  kNoSwitches,       // it has no records of switches, so that the periods stay
  kOnlyInUserSpace,  // where no thread leaves its processor: the event has no samples
};

// Which share of a process is used up.
enum class Limit : std::uint8_t {
  kUnwindSteps,     // COUNT: stacks that are cut
  kUnwindTables,    // COUNT: stacks that are cut
  kForkedMappings,  // COUNT: processes of its family that begin without mappings
  kPerfMap,         // COUNT: names that are known of it
  kLines,           // COUNT: functions without lines
  kNames,           // COUNT: functions, or activations of them, without names
  kPythonStacks,    // COUNT: stacks without Python functions
};

// What a process has lost because it asked for more than its share (base/budget.hpp).
struct Dropped {
  std::uint32_t pid = 0;
  std::string command;  // empty: not known
  Limit limit = Limit::kUnwindSteps;
  std::uint64_t count = 0;
};
// "pid 4711 (x): 970 stacks are cut: ..."
[[nodiscard]] std::string phrase(const Dropped& dropped);

struct WeaveSummary {
  std::uint64_t samples = 0;
  std::uint64_t unwound = 0;           // stacks from registers and copied stack
  std::uint64_t cut = 0;               // of these: the copy was too short
  std::uint64_t no_information = 0;    // of these: a file without unwind tables
  std::uint64_t broken = 0;            // of these: no stack
  std::uint64_t by_frame_pointer = 0;  // of these: a part of them, for want of unwind tables
  std::uint64_t extended = 0;          // samples that got Python frames
  std::uint64_t python_only = 0;       // of these: the C functions in between are not known
  std::uint64_t python_only_cut = 0;   // of these: the copied part of the stack was too short
  std::uint64_t truncated = 0;         // of these: frames are missing at the root
  std::uint64_t without_record = 0;   // of processes with whole Python stacks: none for this sample
  std::uint64_t of_another_time = 0;  // of these: none was read then
  std::uint64_t off_cpu = 0;          // samples whose period is their time off the processor
  // Of these: made for threads that waited since before the recording (or file) began.
  std::uint64_t waits = 0;
  std::uint64_t waits_unknown = 0;  // such threads of which it is not known until when
  NoOffCpu no_off_cpu = NoOffCpu::kNone;
  std::uint64_t limited = 0;     // callchains that perf or the file format cut
  std::uint64_t unreadable = 0;  // samples that are damaged: they are not in the output
  std::uint64_t unwanted = 0;    // samples of other processes: they are not in the output
  // Mappings that cannot be executed: they are not in the output, since no sample has an address of
  // data. perf asks for them whenever stacks are copied.
  std::uint64_t data_mappings = 0;
  std::uint64_t largest_copy = 0;  // bytes of stack that were asked for with a sample
  std::uint64_t losses = 0;        // times that perf was too slow and the kernel lost records
  std::uint64_t lost = 0;          // samples that are missing because of that
  bool by_frequency = false;       // perf chose the period of an event that samples (-F)
  bool by_period = false;          // an event has a period of its own (-c)
  std::size_t longest = 0;         // entries of the longest callchain
  std::uint64_t bytes_before = 0;
  std::uint64_t bytes_after = 0;
  std::string damage;  // the file's records ended before their time; empty: no
  std::vector<NamedImage> images;
  std::vector<Dropped> dropped;  // the largest counts first
};

}  // namespace pyinject::weave
