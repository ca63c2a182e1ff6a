// The perf maps of recorded processes: their trampolines and names.
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

// How many forks lie between a process and one that has what it lacks.
inline constexpr int kMostAncestors = 64;

struct MapSymbol {
  std::uint64_t start = 0;
  std::uint64_t size = 0;
  std::string_view name;
  bool trampoline = false;  // "py::..."
};

// Of a map's text, which the names are parts of; sorted, each address once (the last line holds).
// What is behind the first MOST symbols is not read.
[[nodiscard]] std::vector<MapSymbol> parse_perf_map(std::string_view text,
                                                    std::size_t most = 2'000'000);

class PerfMaps : public unwind::TrampolineFinder {
 public:
  // OPEN: a process's map, readable; invalid: it has none. Asked once for each process.
  using Open = std::function<base::UniqueFd(unwind::ProcessNumber)>;
  // What a map takes is charged to BUDGET's bytes, and to its process's family: of a map that is
  // larger the beginning is known.
  PerfMaps(
      const unwind::AddressSpaces& spaces, Open open,
      std::shared_ptr<base::RecordingBudget> budget = std::make_shared<base::RecordingBudget>())
      : spaces_{spaces}, open_{std::move(open)}, budget_{std::move(budget)} {}

  // Empty: none. Valid as long as this object.
  [[nodiscard]] const std::vector<MapSymbol>& of(unwind::ProcessNumber pid) const;
  // In PID's map, or in that of the process it was forked from: the child goes on in its parent's
  // trampolines and writes a map of its own.
  [[nodiscard]] const MapSymbol* symbol(unwind::ProcessNumber pid, std::uint64_t address) const;
  // From now on hit() has all symbols at ADDRESS, which may be found in PID's map and in those of
  // the processes it came from.
  void mark_hit(unwind::ProcessNumber pid, std::uint64_t address);
  // Of PID's map.
  [[nodiscard]] std::vector<MapSymbol> hit(unwind::ProcessNumber pid) const;
  // The processes whose maps are too large, and how many of their names are known.
  [[nodiscard]] const std::map<unwind::ProcessNumber, std::uint64_t>& cut() const { return cut_; }
  [[nodiscard]] std::optional<unwind::Trampoline> find(unwind::ProcessNumber pid,
                                                       std::uint64_t address) const override;
  // The trampoline of that name; of several any.
  [[nodiscard]] const MapSymbol* trampoline(unwind::ProcessNumber pid, std::string_view name) const;

 private:
  struct Map {
    std::string text;
    std::vector<MapSymbol> symbols;
    std::vector<bool> hit;  // for each of them
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
