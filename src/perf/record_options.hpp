// The options of `perf record`, as far as needed to separate options from a command. Verified
// against `perf record -h` of 6.1, 6.12 and 7.2.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::perf {

enum class OptionArgument {
  kNone,
  kRequired,  // --name=VALUE, --name VALUE, -nVALUE or -n VALUE
  kOptional,  // --name=VALUE or -nVALUE; the next word is never its value
};

struct RecordOption {
  std::string_view long_name;  // may be empty
  char short_name = 0;         // 0: none
  OptionArgument argument = OptionArgument::kNone;
};

// The options of all versions.
[[nodiscard]] std::span<const RecordOption> record_options();

struct ChosenCallGraph {
  enum class Kind { kNone, kFramePointers, kDwarf, kOther };
  Kind kind = Kind::kFramePointers;
  std::uint64_t dump_bytes = 0;  // kDwarf; perf's default is 8192
};

// The user's options for perf, including clustered and abbreviated ones.
struct PerfOptions {
  // -g, --call-graph, --no-call-graph; nullopt: none given.
  std::optional<ChosenCallGraph> call_graph = {};
  // -k, --clockid: "mono", "CLOCK_MONOTONIC", "1"; nullopt: perf's own clock, which no other
  // program can read.
  std::optional<std::string> clock = {};
  // -F in samples per second; nullopt: a period, "max" or nothing was given.
  std::optional<std::uint64_t> frequency = {};
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
// WORDS: options for perf, without a command.
[[nodiscard]] PerfOptions parse_options(const std::vector<std::string>& words);

// The targets that perf selects from WORDS, options and what follows them.
struct ChosenTargets {
  std::string tasks;      // the list of -p, else of -t
  bool launched = false;  // the command with its children; neither: the whole system or a part
};
[[nodiscard]] ChosenTargets chosen_targets(const std::vector<std::string>& words);

// One option of a command line. WORDS: as written, one or two words.
struct ScannedOption {
  const RecordOption* option = nullptr;  // nullptr: not in any table
  bool negated = false;                  // --no-NAME
  std::string value;                     // empty: none
  std::vector<std::string> words;
};

struct ScannedWords {
  // One group per word or cluster of short options ("-gvp 1" is one group of three).
  std::vector<std::vector<ScannedOption>> groups;
  bool separator = false;             // there was a "--"
  std::vector<std::string> command;   // the words after the options
  std::vector<std::string> problems;  // "option --X needs a value", "--X is ambiguous: ..."
};

// Scans WORDS as perf's own parser does: stops at "--" or at the first word that is not an option.
// TABLES are searched together, earlier ones first, perf's own last; long names may be abbreviated.
// For a cluster, ScannedOption::words has each option separately ("-v", "-p" "1").
[[nodiscard]] ScannedWords scan_words(std::span<const std::string> words,
                                      std::span<const std::span<const RecordOption>> tables);

}  // namespace pyinject::perf
