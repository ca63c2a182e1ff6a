// Turns a recording with stack dumps, or with callchains that lack functions entered before the
// attach, into a plain recording with a complete stack for every sample, which stock perf reads.
#pragma once

#include "perfdata/target_gaps.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "pyinject/weave/weave_flags.hpp"
#include "pyinject/weave/weave_summary.hpp"
#include "unwind/address_spaces.hpp"
#include "unwind/objects.hpp"
#include "weave/comm_history.hpp"
#include "weave/python_stacks.hpp"
#include "weave/waits.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include <sys/stat.h>

namespace pyinject::weave {

// A Python in a process.
struct Interpreter {
  // Location of its evaluator (pyinject/python/evaluator.hpp); empty: not found.
  std::vector<AddressRange> evaluator = {};
  // Without frame pointers the kernel's callchains are meaningless.
  bool frame_pointers = true;
  // A time, by the recording's clock, at which it was running: it is valid from the preceding fork
  // or exec to the next one. nullopt: it was running all the time.
  std::optional<std::uint64_t> seen = {};
};
// By pid; several processes can have the same pid, one after another.
using Interpreters = std::unordered_map<std::uint32_t, std::vector<Interpreter>>;

// The functions with which a Python writes its perf map.
struct MapWriter {
  std::vector<AddressRange> functions = {};
  AddressRange text = {};  // the machine code of the interpreter
  std::string file = {};   // that has it, without directories
};

// Layout of the interpreter's entry frames on the C stack, in bytes from their start: where the
// address of the calling Python frame is, and where the byte is that identifies an entry frame.
struct EntryFrame {
  std::uint64_t previous = 0;
  std::uint64_t owner = 0;
  std::uint8_t owner_value = 0;
};

// Information about the recorded processes that is not in the file.
struct RecordingContext {
  // Their Python stacks; nullptr: none.
  StackSource* stacks = nullptr;
  // Their C functions; nullptr: as recorded.
  StackSource* native = nullptr;
  // Time span, by the recording's clock, in which STACKS were read: samples outside of it are
  // counted separately.
  std::uint64_t from = 0;
  std::uint64_t until = ~std::uint64_t{0};
  // If only some frames are known, they are inserted only next to their evaluators.
  Interpreters interpreters = {};
  // For all versions that the interpreters may have.
  std::vector<EntryFrame> entry_frames = {};
  // By pid: processes whose trampoline this tool switched on. Events that their writes to the perf
  // map cause are dropped.
  std::unordered_map<std::uint32_t, MapWriter> map_writers = {};
  // What was dropped while STACKS were read; weave() fills in the process names.
  std::vector<Dropped> dropped = {};
  // Threads that were waiting when the recording started; nullptr: unknown.
  Waits* waits = nullptr;
  // Names for threads that have none of their own in the file; nullptr: none.
  CommHistory* comms = nullptr;
  // Which processes the recording is about (WeaveSummary::stacks).
  enum class Scope : std::uint8_t {
    kUnknown,    // their stacks are not counted
    kProcesses,  // all that perf has recorded
    kPythons,    // Python processes, also when they run another program
  };
  Scope scope = Scope::kUnknown;
  // Samples of other processes are dropped. Unset: keep all.
  std::function<bool(std::uint32_t pid)> wanted = {};
  // Opens the perf map of a process for reading; not valid: none.
  std::function<base::UniqueFd(std::uint32_t pid)> open_map = {};
};

// An executable or library that was deleted, as by an upgrade, while a process had it mapped.
struct ReplacedFile {
  std::string path;  // as recorded, with " (deleted)"
  base::UniqueFd file;
};

struct WeaveOptions {
  std::string input;
  // Written under another name in the same directory and renamed at the end; may be INPUT itself. A
  // directory of perf record --threads is then removed.
  std::string output;
  // INPUT was written for this recording: a file of another user was not, and is left alone. Only
  // a directory that was may be replaced.
  bool recorded = false;
  // INPUT is incomplete because its perf died (perfdata/input.hpp).
  bool unfinished = false;
  WeaveFlags flags = {};  // KEEP_RAW has no effect
  // More files of the recording follow INPUT: threads that have not run in this one still wait.
  bool followed = false;
  // Drops samples before this time, by the recording's clock: those of events that had to be
  // enabled for a moment before the recording started.
  std::uint64_t begun_at = 0;
  // End of the waits that still last, by the recording's clock; 0: the last record.
  std::uint64_t ended_at = 0;
  // Becomes part of OUTPUT.
  perfdata::TargetGaps gaps = {};
  // kernel.perf_event_max_stack: a callchain with this many entries may lack outer functions.
  std::size_t most_entries = 127;
  // The path in the file of the image with the names of PID; 0: names without a process.
  std::function<std::string(std::uint32_t pid)> image_path;
  // Called a few times a second with the part done, 0 to 1. False: cancel.
  std::function<bool(double done, std::uint64_t samples)> progress = {};
  // Called when everything is written, before it replaces OUTPUT, which has no names without its
  // images. INPUT: owner and mode of the file that was read, which OUTPUT gets.
  std::function<void(const std::vector<NamedImage>& images,
                     const std::vector<ReplacedFile>& replaced, const struct stat& input)>
      keep = {};
};

// The file was left unchanged.
struct Untouched {
  std::string why;
  bool cancelled = false;
};

// Every wanted sample of the input since BEGUN_AT is in the output, except the ends of timed calls,
// with all its data except user registers and stack dump. Two passes; memory is bounded by the
// number of mappings and names, not of samples; OFF_CPU adds 24 bytes per context switch,
// TIMED_CALLS 16 per call, up to 1 GiB, and deferred callchains add up to
// DeferredChains::kMostBytes. Throws base::Error; OUTPUT is then unchanged.
[[nodiscard]] std::variant<WeaveSummary, Untouched> weave(const WeaveOptions& options,
                                                          const RecordingContext& context,
                                                          unwind::FileFinder& files);

}  // namespace pyinject::weave
