#include "weave/perf_maps.hpp"

#include "base/file.hpp"
#include "perf/perf_map.hpp"
#include "pyinject/base/error.hpp"

#include <algorithm>

namespace pyinject::weave {

namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{256} << 20U;
// A name takes a symbol, a bit and an entry in the table of trampolines.
constexpr std::uint64_t kOfName = sizeof(MapSymbol) + 64;

}  // namespace

std::vector<MapSymbol> parse_perf_map(std::string_view text, std::size_t most) {
  std::vector<MapSymbol> symbols;
  const auto lines = static_cast<std::size_t>(std::ranges::count(text, '\n')) + 1;
  symbols.reserve(std::min(lines, most));
  while (!text.empty() && symbols.size() < most) {
    const auto end = std::min(text.find('\n'), text.size());
    if (const auto entry = perf::parse_perf_map_line(text.substr(0, end));
        entry && entry->size > 0) {
      symbols.push_back({.start = entry->start,
                         .size = entry->size,
                         .name = entry->name,
                         .trampoline = entry->name.starts_with("py::")});
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  // Keep the last symbol at each address.
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
  auto& map = maps_[pid];  // final location: the names point into its text
  if (const auto file = open_(pid); file.valid()) {
    try {
      read(pid, file.get(), map);
    } catch (const base::SystemError&) {
      map = {};  // treat as no map
    }
  }
  for (std::size_t i = 0; i < map.symbols.size(); ++i) {
    if (map.symbols[i].trampoline) {
      map.trampolines.emplace(map.symbols[i].name, i);
    }
  }
  return map;
}

void PerfMaps::read(unwind::ProcessNumber pid, int fd, Map& map) const {
  const auto family = spaces_.family(pid);
  const auto share = budget_->bytes.left(family);
  // At most half of the share, to leave room for the names in case of short lines.
  const auto most = std::min(kMostBytes, share / 2);
  map.text = base::read_fd(fd, static_cast<std::size_t>(most), "a perf map");
  map.text.shrink_to_fit();
  const auto most_names = (share - map.text.size()) / kOfName;
  map.symbols = parse_perf_map(map.text, static_cast<std::size_t>(most_names));
  map.symbols.shrink_to_fit();
  map.hit.resize(map.symbols.size());
  budget_->bytes.charge(family, map.text.size() + map.symbols.size() * kOfName);
  if (map.text.size() == most || map.symbols.size() == most_names) {
    cut_[pid] = map.symbols.size();
  }
}

const MapSymbol* PerfMaps::symbol_in(const Map& map, std::uint64_t address) {
  if (map.symbols.empty() || address < map.symbols.front().start) {
    return nullptr;
  }
  const auto behind = std::ranges::upper_bound(map.symbols, address, {}, &MapSymbol::start);
  return behind != map.symbols.begin() &&
                 address - std::prev(behind)->start < std::prev(behind)->size
             ? &*std::prev(behind)
             : nullptr;
}

const std::vector<MapSymbol>& PerfMaps::of(unwind::ProcessNumber pid) const {
  return load(pid).symbols;
}

const MapSymbol* PerfMaps::symbol(unwind::ProcessNumber pid, std::uint64_t address) const {
  for (int depth = 0; depth < kMostAncestors; ++depth) {
    if (const auto* const found = symbol_in(load(pid), address)) {
      return found;
    }
    const auto origin = spaces_.origin(pid);
    if (!origin) {
      return nullptr;
    }
    pid = origin->parent;
  }
  return nullptr;
}

void PerfMaps::mark_hit(unwind::ProcessNumber pid, std::uint64_t address) {
  for (int depth = 0; depth < kMostAncestors; ++depth) {
    const auto& map = load(pid);
    if (const auto* const found = symbol_in(map, address)) {
      maps_.at(pid).hit[static_cast<std::size_t>(found - map.symbols.data())] = true;
    }
    const auto origin = spaces_.origin(pid);
    if (!origin) {
      return;
    }
    pid = origin->parent;
  }
}

std::vector<MapSymbol> PerfMaps::hit(unwind::ProcessNumber pid) const {
  const auto& map = load(pid);
  std::vector<MapSymbol> symbols;
  for (std::size_t i = 0; i < map.symbols.size(); ++i) {
    if (map.hit[i]) {
      symbols.push_back(map.symbols[i]);
    }
  }
  return symbols;
}

std::optional<unwind::Trampoline> PerfMaps::find(unwind::ProcessNumber pid,
                                                 std::uint64_t address) const {
  const auto* const found = symbol(pid, address);
  return found != nullptr && found->trampoline
             ? std::optional{unwind::Trampoline{.begin = found->start, .size = found->size}}
             : std::nullopt;
}

const MapSymbol* PerfMaps::trampoline(unwind::ProcessNumber pid, std::string_view name) const {
  const auto& map = load(pid);
  const auto found = map.trampolines.find(name);
  return found == map.trampolines.end() ? nullptr : &map.symbols[found->second];
}

}  // namespace pyinject::weave
