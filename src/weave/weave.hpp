// From a recording with copied stacks, or with callchains that lack what was entered before the
// attach, to a plain one in which every sample has its whole stack. Stock perf reads it.
#pragma once

#include "pyinject/base/unique_fd.hpp"
#include "pyinject/weave/weave_flags.hpp"
#include "pyinject/weave/weave_summary.hpp"
#include "unwind/address_spaces.hpp"
#include "unwind/objects.hpp"
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

// What is known of a Python in a process.
struct Interpreter {
  // Where its evaluator is (pyinject/python/evaluator.hpp); empty: that was not found.
  std::vector<AddressRange> evaluator = {};
  // Without, the kernel's callchains mean nothing.
  bool frame_pointers = true;
  // A time of the recording's clock at which it was there: it was not before the fork or exec
  // before that, nor from the next one on. nullopt: it was there all the time.
  std::optional<std::uint64_t> seen = {};
};
// By the process's number, which one after another can have.
using Interpreters = std::unordered_map<std::uint32_t, std::vector<Interpreter>>;

// Of processes of which this is known, all the time, with frame pointers.
[[nodiscard]] Interpreters interpreters_of(
    const std::unordered_map<std::uint32_t, std::vector<AddressRange>>& evaluators);

// An entry frame of the interpreter lies on the C stack: where in it the address of the Python
// frame that called it is, and where the byte that tells that it is one (bytes from its begin).
struct EntryFrame {
  std::uint64_t previous = 0;
  std::uint64_t owner = 0;
  std::uint8_t owner_value = 0;
};

// What is known of the recorded processes besides the file.
struct RecordingContext {
  // Their Python stacks; nullptr: none.
  StackSource* stacks = nullptr;
  // When STACKS were read, by the recording's clock: samples of another time are counted apart.
  std::uint64_t from = 0;
  std::uint64_t until = ~std::uint64_t{0};
  // Frames of which only some are known are put in nowhere but behind their evaluators.
  Interpreters interpreters = {};
  // Of all versions that the interpreters may have.
  std::vector<EntryFrame> entry_frames = {};
  // What was dropped while STACKS were read; the names of processes are filled in.
  std::vector<Dropped> dropped = {};
  // Who waited when the recording began; nullptr: that is not known.
  Waits* waits = nullptr;
  // Samples of other processes are left out. Unset: none are.
  std::function<bool(std::uint32_t pid)> wanted = {};
  // The perf map of a process, readable; invalid: it has none.
  std::function<base::UniqueFd(std::uint32_t pid)> open_map = {};
};

struct WeaveOptions {
  std::string input;
  // Written beside it under another name and renamed at the end; may be INPUT itself.
  std::string output;
  // INPUT was written for this recording: the file of another user is not, and is left alone.
  bool recorded = false;
  // INPUT was not completed by its perf, which has died (perfdata/input.hpp).
  bool unfinished = false;
  WeaveFlags flags = {};  // KEEP_RAW has no effect
  // More files of the recording come after INPUT: who has not run in this one still waits.
  bool followed = false;
  // Samples of before this time, by the recording's clock, are left out: those of events that had
  // to be enabled for a moment before the recording began.
  std::uint64_t begun_at = 0;
  // Until when who waits at the end does, by the recording's clock; 0: until the last record.
  std::uint64_t ended_at = 0;
  // kernel.perf_event_max_stack: a callchain that has so many may lack outer functions.
  std::size_t most_entries = 127;
  // The path by which the file names the image with the names of PID, 0: those without a process.
  std::function<std::string(std::uint32_t pid)> image_path;
  // Called some times a second with what part is done, 0 to 1. False: stop.
  std::function<bool(double done, std::uint64_t samples)> progress = {};
  // Called when all is written, before it takes OUTPUT's place: without its images it has no names.
  // INPUT: owner and mode of the file that was read, which OUTPUT gets.
  std::function<void(const std::vector<NamedImage>& images, const struct stat& input)> keep = {};
};

// The file was left alone.
struct Untouched {
  std::string why;
  bool cancelled = false;
};

// Every sample of the input that is wanted, since BEGUN_AT, is in the output, with all that it had
// but user registers and copied stack. Two passes; memory is bounded by the number of mappings and
// names, not of samples; with OFF_CPU it has 24 bytes for each switch. Throws base::Error; OUTPUT
// is then as it was before.
[[nodiscard]] std::variant<WeaveSummary, Untouched> weave(const WeaveOptions& options,
                                                          const RecordingContext& context,
                                                          unwind::FileFinder& files);

}  // namespace pyinject::weave
