#include "cli/added_recipes.hpp"

#include "base/format.hpp"
#include "cli/recipes.hpp"
#include "pyinject/base/cancellation.hpp"
#include "pyinject/targets/stop_signals.hpp"
#include "record/call_graph.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace pyinject::cli {

namespace {

std::vector<std::string> events_of(const std::optional<record::MallocProbes>& probes) {
  return probes ? probes->events() : std::vector<std::string>{};
}

// Warns before probing: every malloc will hit a breakpoint.
void warn_of_price(const record::MallocProbes& functions, base::Logger& logger) {
  logger.info(
      "--what malloc: a breakpoint in malloc, calloc and realloc of {}: during the recording, each "
      "call in the recorded processes takes 5 to 10 us longer and a few hundred bytes in the file",
      fmt::join(functions.files(), ", "));
}

}  // namespace

std::variant<RecipeProbes, int> RecipeProbes::of(const std::vector<std::string>& names,
                                                 std::span<const base::Pid> pids,
                                                 base::Logger& logger) {
  RecipeProbes all;
  const auto wants = [&](std::string_view recipe) {
    return std::ranges::find(names, recipe) != names.end() && !pids.empty();
  };
  if (!wants(kMallocRecipe) && !wants(kMemoryRecipe)) {
    return all;
  }
  base::Cancellation cancellation;
  targets::StopSignals signals;
  signals.listen([&cancellation](int) { cancellation.cancel(); });
  if (wants(kMallocRecipe)) {
    auto probed = record::MallocProbes::of(pids, cancellation, logger);
    if (const auto signal = signals.next()) {
      return 128 + *signal;
    }
    if (const auto* const why_not = std::get_if<std::string>(&probed)) {
      logger.error("--what malloc: {}; or --what alloc, without probes", *why_not);
      return record::kFailure;
    }
    warn_of_price(all.functions.emplace(std::get<record::MallocProbes>(std::move(probed))), logger);
  }
  if (wants(kMemoryRecipe)) {
    auto probes = record::MallocProbes::that_tell(pids, cancellation, logger);
    if (const auto signal = signals.next()) {
      return 128 + *signal;
    }
    if (probes) {
      logger.info(
          "--what memory: the allocator in {} tells a sample of its blocks: event heap, allocated "
          "and not freed",
          fmt::join(probes->files(), ", "));
      all.blocks.emplace(std::move(*probes));
    }
  }
  return all;
}

void RecipeProbes::remove(base::Logger& logger) {
  for (auto* const probes : {&functions, &blocks}) {
    if (*probes) {
      (*probes)->remove(logger);
    }
  }
}

bool add_recipes(const std::vector<std::string>& names, const RecipeProbes& probes,
                 record::RecordPlan& record, base::Logger& logger) {
  const auto& chosen = *record.perf_options;
  auto expanded = expand({.names = names,
                          .rate = chosen.rate,
                          .frequency = chosen.rate && !chosen.period,
                          .off_cpu = record.flags.off_cpu,
                          .probes = events_of(probes.functions),
                          .blocks = events_of(probes.blocks)},
                         events_of_this_machine());
  if (const auto* const why_not = std::get_if<std::string>(&expanded)) {
    logger.error("{}", *why_not);
    return false;
  }
  auto& recipes = std::get<Expansion>(expanded);
  for (const auto& note : recipes.notes) {
    logger.info("{}", note);
  }
  const auto what = fmt::format("--what {}", fmt::join(names, ","));
  if (!recipes.events.empty()) {
    std::vector<std::string> options{"-e", recipes.events};
    const auto buffer = !chosen.rate && !chosen.buffers ? record::affordable_buffer() : 0;
    if (buffer != 0) {  // calls come in bursts
      options.insert(options.end(), {"-m", fmt::format("{}K", buffer >> 10U)});
    }
    logger.info("{}: {}", what, fmt::join(options, " "));
    record.perf_options.add(options);
  }
  if (record.engine == record::EngineChoice::kTrampoline) {
    logger.info("{}: functions have no line numbers with --engine trampoline", what);
  }
  record.flags.timed_calls = std::move(recipes.timed_calls);
  record.flags.memory_calls = std::move(recipes.memory_calls);
  return true;
}

}  // namespace pyinject::cli
