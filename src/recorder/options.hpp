// The options of `perf record` that this recorder has. It is no second perf: it refuses every other
// option by its name.
#pragma once

#include "recorder/event_names.hpp"

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <sys/types.h>

namespace pyinject::recorder {

inline constexpr std::uint64_t kDefaultFrequency = 4000;  // perf's

struct Options {
  std::vector<NamedEvent> events;          // empty: the default
  std::optional<std::uint64_t> frequency;  // -F
  bool most_frequent = false;              // -F max
  std::optional<std::uint64_t> period;     // -c
  enum class Chains { kNone, kFramePointers, kCopiedStacks };
  Chains chains = Chains::kNone;
  std::uint32_t stack_bytes = 8192;  // that are copied
  bool kernel_chains_only = false;
  bool user_chains_only = false;
  std::string output = "perf.data";
  std::vector<pid_t> pids;          // empty: the whole system
  std::optional<std::string> cpus;  // -C: "0-3,5"
  std::optional<std::string> cgroup;
  std::optional<clockid_t> clock;  // nullopt: perf's own
  std::size_t ring_bytes = std::size_t{512} << 10U;
  bool ring_is_chosen = false;  // -m: otherwise it may be smaller
  bool inherit = true;
  bool switches = false;  // --switch-events
  bool build_ids = true;
  bool sampled_periods = false;  // --period, with -c, too
  int compression = 0;           // -z: level of zstd, 1 to 22; 0: none
  bool begins_disabled = false;  // -D -1
  int commands = -1;             // --control
  int answers = -1;
};

// WORDS: those after `record`. A string says why not, with the remedy.
[[nodiscard]] std::variant<Options, std::string> parse_options(std::span<const std::string> words,
                                                               const TracepointId& tracepoint);

// The same for the options that a user gives: why this recorder cannot serve them; nullopt: it can.
[[nodiscard]] std::optional<std::string> refusal(std::span<const std::string> words);

// "0-2,5": 0, 1, 2, 5. Empty: not a list.
[[nodiscard]] std::vector<int> parse_processors(std::string_view list);

}  // namespace pyinject::recorder
