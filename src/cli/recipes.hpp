// The recipes of record --what: names for sets of perf events.
#pragma once

#include "pyinject/weave/weave_flags.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace pyinject::cli {

// "io,net": throws CommandLineError for an unknown name. Without repetitions.
[[nodiscard]] std::vector<std::string> parse_recipes(const std::string& list);
[[nodiscard]] std::vector<std::string> recipe_names();

// The events of a machine, as far as the recipes need them.
struct KnownEvents {
  // The id of a tracepoint; nullopt: the kernel does not have it.
  std::function<std::optional<std::uint64_t>(const std::string& tracepoint)> id_of;
  std::string why_no_tracepoints = {};  // with the remedy; empty: they are readable
  bool cache_misses = true;             // the hardware counts them
};
[[nodiscard]] KnownEvents events_of_this_machine();

// The recipe that needs probes on the allocator of the targets, and the one that takes what the
// allocator itself tells (record/malloc_probes.hpp).
inline constexpr std::string_view kMallocRecipe = "malloc";
inline constexpr std::string_view kMemoryRecipe = "memory";

struct RecipeRequest {
  std::vector<std::string> names;
  bool rate = false;       // the user chose it (-F, -c)
  bool frequency = false;  // by -F: perf samples each hit of a tracepoint otherwise, even with -c
  bool off_cpu = false;    // --off-cpu samples each switch, too
  std::vector<std::string> probes = {};  // the events of "malloc"
  std::vector<std::string> blocks = {};  // of "memory": GROUP:heap_alloc, GROUP:heap_free
};

struct Expansion {
  std::string events;  // for perf record -e; empty: none
  // For the weave flags: system calls with both tracepoints in EVENTS.
  std::vector<weave::TimedCall> timed_calls;
  std::vector<weave::MemoryCall> memory_calls;  // likewise
  std::vector<std::string> notes;
};

// A string: why this machine cannot record them, with the next best way. Pure.
[[nodiscard]] std::variant<Expansion, std::string> expand(const RecipeRequest& request,
                                                          const KnownEvents& known);

}  // namespace pyinject::cli
