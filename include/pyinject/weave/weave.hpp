// From a recording with copied stacks, or with callchains that lack what was entered before the
// attach, to a plain one in which every sample has its whole stack. Stock perf reads it.
#pragma once

#include "pyinject/base/unique_fd.hpp"
#include "pyinject/unwind/address_spaces.hpp"
#include "pyinject/unwind/objects.hpp"
#include "pyinject/weave/python_stacks.hpp"
#include "pyinject/weave/symbol_image.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace pyinject::weave {

// What is known of the recorded processes beside the file.
struct Knowledge {
  // Their Python stacks; nullptr: none.
  const StackSource* stacks = nullptr;
  // Where each one's evaluator is (python/evaluator.hpp). Without it nothing is put in.
  std::unordered_map<std::uint32_t, std::vector<AddressRange>> evaluators = {};
  // The perf map of a process, readable; invalid: it has none.
  std::function<base::UniqueFd(std::uint32_t pid)> open_map = {};
};

// An image to be kept where perf finds it.
struct NamedImage {
  std::string path;  // as the file says it
  SymbolImage image;
};

struct WeaveOptions {
  std::string input;
  // Written beside it under another name and renamed at the end; may be INPUT itself.
  std::string output;
  // The lines of Python frames in their names: "py::f:file:12".
  bool lines = false;
  // The path by which the file names the image with the names of PID, 0: those without a process.
  std::function<std::string(std::uint32_t pid)> image_path;
  // Called some times a second with what part is done, 0 to 1. False: stop.
  std::function<bool(double done, std::uint64_t samples)> progress = {};
  // Called when all is written, before it takes OUTPUT's place: without its images it has no names.
  std::function<void(const std::vector<NamedImage>& images)> keep = {};
};

struct WeaveSummary {
  std::uint64_t samples = 0;
  std::uint64_t unwound = 0;           // stacks from registers and copied stack
  std::uint64_t cut = 0;               // of these: the copy was too short
  std::uint64_t no_information = 0;    // of these: a file without unwind tables
  std::uint64_t broken = 0;            // of these: no stack
  std::uint64_t by_frame_pointer = 0;  // of these: a part of them, for want of unwind tables
  std::uint64_t extended = 0;          // samples that got Python frames from KNOWLEDGE
  std::uint64_t limited = 0;           // callchains that perf or the file format cut
  std::uint64_t unreadable = 0;        // samples that are damaged: they are not in the output
  std::uint64_t losses = 0;            // times that perf was too slow and the kernel lost records
  std::size_t longest = 0;             // entries of the longest callchain
  std::uint64_t bytes_before = 0;
  std::uint64_t bytes_after = 0;
  std::string damage;  // the file's records ended before their time; empty: no
  std::vector<NamedImage> images;
};

// The file was left alone.
struct Untouched {
  std::string why;
  bool cancelled = false;
};

// Every sample of the input is in the output, with all that it had but user registers and copied
// stack. Two passes; memory is bounded by the number of mappings and names, not of samples. Throws
// base::Error; OUTPUT is then as it was before.
[[nodiscard]] std::variant<WeaveSummary, Untouched> weave(const WeaveOptions& options,
                                                          const Knowledge& knowledge,
                                                          unwind::FileFinder& files);

}  // namespace pyinject::weave
