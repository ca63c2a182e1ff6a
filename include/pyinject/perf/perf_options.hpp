// The options of one `perf record` and what they mean.
//
// For example:
//   const perf::PerfOptions options{{"-F", "99", "-g", "-o", "web.data"}};
//   std::cout << options->output.path << '\n';  // web.data
#pragma once

#include "pyinject/perf/output_file.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pyinject::perf {

struct ChosenCallGraph {
  enum class Kind { kNone, kFramePointers, kDwarf, kOther };
  Kind kind = Kind::kFramePointers;
  std::uint64_t dump_bytes = 0;  // kDwarf; perf's default is 8192
};

struct ParsedOptions {
  // -g, --call-graph, --no-call-graph; nullopt: none given.
  std::optional<ChosenCallGraph> call_graph = {};
  // -k, --clockid: "mono", "CLOCK_MONOTONIC", "1"; nullopt: perf's own clock, which no other
  // program can read.
  std::optional<std::string> clock = {};
  // -F in samples per second; nullopt: a period, "max" or nothing was given.
  std::optional<std::uint64_t> frequency = {};
  Output output = {};                // -o and what makes several files
  bool rate = false;                 // -F, --freq, -c, --count: sampling rate given
  bool period = false;               // -c, --count: perf then ignores -F
  bool event = false;                // -e, --event
  bool buffers = false;              // -m, --mmap-pages: buffer size given
  bool overwrite = false;            // --overwrite: only the final contents of the buffers are kept
  bool threads = false;              // --threads: perf writes a directory
  bool kcore = false;                // --kcore: the same, which cannot become a file
  bool processors = false;           // -C, --cpu
  bool per_thread = false;           // --per-thread: perf then adds no times by itself
  bool leaves_out_children = false;  // -i, --no-inherit: no later threads and children
};
// WORDS: options for perf, without a command, also clustered and abbreviated ones; as in perf, the
// last of an option wins. Without -o, perf writes to stdout if that is a pipe.
[[nodiscard]] ParsedOptions parse_options(const std::vector<std::string>& words,
                                          bool stdout_is_pipe = false);

// Options for perf, unchanged and in order, parsed once. `options->frequency` is what they mean.
class PerfOptions {
 public:
  PerfOptions() = default;
  explicit PerfOptions(std::vector<std::string> words)
      : words_{std::move(words)}, parsed_{parse_options(words_)} {}

  // Appends WORDS, which win over earlier ones.
  void add(const std::vector<std::string>& words) {
    words_.insert(words_.end(), words.begin(), words.end());
    parsed_ = parse_options(words_);
  }

  [[nodiscard]] const std::vector<std::string>& words() const { return words_; }
  [[nodiscard]] const ParsedOptions* operator->() const { return &parsed_; }
  [[nodiscard]] const ParsedOptions& operator*() const { return parsed_; }

 private:
  std::vector<std::string> words_;
  ParsedOptions parsed_;
};

}  // namespace pyinject::perf
