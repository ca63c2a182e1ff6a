#include "cli/added_recipes.hpp"

#include "base/format.hpp"
#include "cli/recipes.hpp"
#include "perf/record_options.hpp"
#include "record/call_graph.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <variant>

namespace pyinject::cli {

bool add_recipes(const std::vector<std::string>& names, const std::vector<std::string>& probes,
                 record::RecordOptions& record, base::Logger& logger) {
  const auto chosen = perf::parse_options(record.perf_options);
  auto expanded = expand({.names = names,
                          .rate = chosen.rate,
                          .frequency = chosen.rate && !chosen.period,
                          .off_cpu = record.flags.off_cpu,
                          .probes = probes},
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
    record.perf_options.insert(record.perf_options.end(), options.begin(), options.end());
  }
  if (record.engine == record::EngineChoice::kTrampoline) {
    logger.info("{}: functions have no line numbers with --engine trampoline", what);
  }
  record.flags.timed_calls = std::move(recipes.timed_calls);
  record.flags.memory_calls = std::move(recipes.memory_calls);
  return true;
}

}  // namespace pyinject::cli
