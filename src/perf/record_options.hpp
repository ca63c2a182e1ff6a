// The options that `perf record` knows, as far as is needed to tell options from a command.
// Verified against `perf record -h` of 6.1, 6.12 and 7.2.
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

// All versions' options in one table.
[[nodiscard]] std::span<const RecordOption> record_options();

struct ChosenCallGraph {
  enum class Kind { kNone, kFramePointers, kDwarf, kOther };
  Kind kind = Kind::kFramePointers;
  std::uint64_t dump_bytes = 0;  // kDwarf; perf's default is 8192
};

// What the user's options for perf say, also within a cluster or abbreviated.
struct PerfOptions {
  // -g, --call-graph, --no-call-graph; nullopt: nothing is said.
  std::optional<ChosenCallGraph> call_graph = {};
  // -k, --clockid: "mono", "CLOCK_MONOTONIC", "1"; nullopt: perf's own clock, which no other
  // program can read.
  std::optional<std::string> clock = {};
  // -F in samples a second; nullopt: a period, "max" or nothing was chosen.
  std::optional<std::uint64_t> frequency = {};
  bool rate = false;                 // -F, --freq, -c, --count: how often is sampled
  bool event = false;                // -e, --event
  bool buffers = false;              // -m, --mmap-pages: how large perf's buffers are
  bool overwrite = false;            // --overwrite: only what the buffers have at the end is kept
  bool directory = false;            // --threads: perf writes a directory
  bool leaves_out_children = false;  // -i, --no-inherit: what targets begin later is not recorded
};
// WORDS: options as they go to perf, no command among them.
[[nodiscard]] PerfOptions parse_options(const std::vector<std::string>& words);

// Whom WORDS, options and what follows them, make perf record.
struct ChosenTargets {
  std::string tasks;      // the list of -p, else of -t
  bool launched = false;  // the command, with what it starts; neither: the whole system, or a part
};
[[nodiscard]] ChosenTargets chosen_targets(const std::vector<std::string>& words);

// One option of a command line. WORDS as they were written, one or two of them.
struct ScannedOption {
  const RecordOption* option = nullptr;  // nullptr: in no table
  bool negated = false;                  // --no-NAME
  std::string value;                     // empty when there is none
  std::vector<std::string> words;
};

struct ScannedWords {
  // Per word or cluster of short options ("-gvp 1" is one group of three).
  std::vector<std::vector<ScannedOption>> groups;
  bool separator = false;             // there was a "--"
  std::vector<std::string> command;   // what follows the options
  std::vector<std::string> problems;  // "option --X needs a value", "--X is ambiguous: ..."
};

// Scans WORDS as perf's own parser does: it stops at "--" or at the first word that is no option.
// TABLES are searched together, earlier ones first, perf's own last; long names may be abbreviated.
// In a cluster whose options are to be told apart, ScannedOption::words holds each one alone ("-v",
// "-p" "1").
[[nodiscard]] ScannedWords scan_words(std::span<const std::string> words,
                                      std::span<const std::span<const RecordOption>> tables);

}  // namespace pyinject::perf
