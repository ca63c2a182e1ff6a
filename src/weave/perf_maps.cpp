#include "weave/perf_maps.hpp"

#include "pyinject/base/error.hpp"
#include "pyinject/base/file.hpp"
#include "pyinject/perf/perf_map.hpp"

#include <algorithm>

namespace pyinject::weave {

namespace {

constexpr std::size_t kMostBytes = std::size_t{256} << 20U;
constexpr std::size_t kMostSymbols = 2'000'000;

}  // namespace

std::vector<MapSymbol> parse_perf_map(std::string_view text) {
  std::vector<MapSymbol> symbols;
  while (!text.empty() && symbols.size() < kMostSymbols) {
    const auto end = std::min(text.find('\n'), text.size());
    if (const auto entry = perf::parse_perf_map_line(text.substr(0, end));
        entry && entry->size > 0) {
      symbols.push_back({.start = entry->start,
                         .size = entry->size,
                         .name = std::string{entry->name},
                         .trampoline = entry->name.starts_with("py::")});
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  // The last of those at one address is kept.
  std::ranges::reverse(symbols);
  std::ranges::stable_sort(symbols, {}, &MapSymbol::start);
  symbols.erase(std::unique(symbols.begin(), symbols.end(),
                            [](const auto& a, const auto& b) { return a.start == b.start; }),
                symbols.end());
  return symbols;
}

const PerfMaps::Map& PerfMaps::load(unwind::ProcessNumber pid) const {
  if (const auto found = maps_.find(pid); found != maps_.end()) {
    return found->second;
  }
  Map map;
  if (const auto file = open_(pid); file.valid()) {
    try {
      map.symbols = parse_perf_map(base::read_fd(file.get(), kMostBytes, "a perf map"));
    } catch (const base::SystemError&) {
      map.symbols.clear();  // as if there were none
    }
  }
  for (std::size_t i = 0; i < map.symbols.size(); ++i) {
    if (map.symbols[i].trampoline) {
      map.trampolines.emplace(map.symbols[i].name, i);
    }
  }
  return maps_.emplace(pid, std::move(map)).first->second;
}

const std::vector<MapSymbol>& PerfMaps::of(unwind::ProcessNumber pid) const {
  return load(pid).symbols;
}

const MapSymbol* PerfMaps::symbol(unwind::ProcessNumber pid, std::uint64_t address) const {
  for (int depth = 0; depth < kMostAncestors; ++depth) {
    const auto& symbols = of(pid);
    const auto behind = std::ranges::upper_bound(symbols, address, {}, &MapSymbol::start);
    if (behind != symbols.begin() && address - std::prev(behind)->start < std::prev(behind)->size) {
      return &*std::prev(behind);
    }
    const auto origin = spaces_.origin(pid);
    if (!origin) {
      return nullptr;
    }
    pid = origin->parent;
  }
  return nullptr;
}

std::optional<unwind::Trampoline> PerfMaps::find(unwind::ProcessNumber pid,
                                                 std::uint64_t address) const {
  const auto* const found = symbol(pid, address);
  return found != nullptr && found->trampoline
             ? std::optional{unwind::Trampoline{.begin = found->start, .size = found->size}}
             : std::nullopt;
}

const MapSymbol* PerfMaps::trampoline(unwind::ProcessNumber pid, const std::string& name) const {
  const auto& map = load(pid);
  const auto found = map.trampolines.find(name);
  return found == map.trampolines.end() ? nullptr : &map.symbols[found->second];
}

}  // namespace pyinject::weave
