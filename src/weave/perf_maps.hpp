// The perf maps of recorded processes: trampolines and names.
#pragma once

#include "base/budget.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "unwind/address_spaces.hpp"
#include "unwind/unwinder.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pyinject::weave {

// Maximum number of forks between a process and the ancestor that supplies what it lacks.
inline constexpr int kMostAncestors = 64;

struct MapSymbol {
  std::uint64_t start = 0;
  std::uint64_t size = 0;
  std::string_view name;
  bool trampoline = false;  // "py::..."
};

// Parses TEXT, which the names point into. Sorted, each address once (the last line wins). Stops
// after MOST symbols.
[[nodiscard]] std::vector<MapSymbol> parse_perf_map(std::string_view text,
                                                    std::size_t most = 2'000'000);

class PerfMaps : public unwind::TrampolineFinder {
 public:
  // OPEN: returns a process's map, readable; not valid: none. Called once per process.
  using Open = std::function<base::UniqueFd(unwind::ProcessNumber)>;
  // Memory for a map is charged to BUDGET's bytes and to the process's family; of a map that is too
  // large only the beginning is used.
  PerfMaps(
      const unwind::AddressSpaces& spaces, Open open,
      std::shared_ptr<base::RecordingBudget> budget = std::make_shared<base::RecordingBudget>())
      : spaces_{spaces}, open_{std::move(open)}, budget_{std::move(budget)} {}

  // Empty: none. Valid as long as this object.
  [[nodiscard]] const std::vector<MapSymbol>& of(unwind::ProcessNumber pid) const;
  // Searches PID's map, then those of the processes it was forked from: a child keeps using its
  // parent's trampolines and writes a map of its own.
  [[nodiscard]] const MapSymbol* symbol(unwind::ProcessNumber pid, std::uint64_t address) const;
  // Adds to hit() all symbols at ADDRESS, in PID's map and in those of the processes it was forked
  // from.
  void mark_hit(unwind::ProcessNumber pid, std::uint64_t address);
  // Symbols of PID's map.
  [[nodiscard]] std::vector<MapSymbol> hit(unwind::ProcessNumber pid) const;
  // Processes with maps that are too large, and how many of their names are known.
  [[nodiscard]] const std::map<unwind::ProcessNumber, std::uint64_t>& cut() const { return cut_; }
  [[nodiscard]] std::optional<unwind::Trampoline> find(unwind::ProcessNumber pid,
                                                       std::uint64_t address) const override;
  // The trampoline with this name; any if there are several.
  [[nodiscard]] const MapSymbol* trampoline(unwind::ProcessNumber pid, std::string_view name) const;

 private:
  struct Map {
    std::string text;
    std::vector<MapSymbol> symbols;
    std::vector<bool> hit;  // per symbol
    std::unordered_map<std::string_view, std::size_t> trampolines;
  };
  void read(unwind::ProcessNumber pid, int fd, Map& map) const;
  [[nodiscard]] static const MapSymbol* symbol_in(const Map& map, std::uint64_t address);
  [[nodiscard]] const Map& load(unwind::ProcessNumber pid) const;

  const unwind::AddressSpaces& spaces_;
  Open open_;
  std::shared_ptr<base::RecordingBudget> budget_;
  mutable std::map<unwind::ProcessNumber, std::uint64_t> cut_;
  mutable std::unordered_map<unwind::ProcessNumber, Map> maps_;
};

}  // namespace pyinject::weave
