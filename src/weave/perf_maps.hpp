// The perf maps of recorded processes: their trampolines and names.
#pragma once

#include "pyinject/base/unique_fd.hpp"
#include "pyinject/unwind/address_spaces.hpp"
#include "pyinject/unwind/unwinder.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace pyinject::weave {

// How many forks lie between a process and one that has what it lacks.
inline constexpr int kMostAncestors = 64;

struct MapSymbol {
  std::uint64_t start = 0;
  std::uint64_t size = 0;
  std::string name;
  bool trampoline = false;  // "py::..."
};

// Of a map's text; sorted, each address once (the last line holds).
[[nodiscard]] std::vector<MapSymbol> parse_perf_map(std::string_view text);

class PerfMaps : public unwind::TrampolineFinder {
 public:
  // OPEN: a process's map, readable; invalid: it has none. Asked once for each process.
  using Open = std::function<base::UniqueFd(unwind::ProcessNumber)>;
  PerfMaps(const unwind::AddressSpaces& spaces, Open open)
      : spaces_{spaces}, open_{std::move(open)} {}

  // Empty: none. Valid as long as this object.
  [[nodiscard]] const std::vector<MapSymbol>& of(unwind::ProcessNumber pid) const;
  // In PID's map, or in that of the process it was forked from: the child goes on in its parent's
  // trampolines and writes a map of its own.
  [[nodiscard]] const MapSymbol* symbol(unwind::ProcessNumber pid, std::uint64_t address) const;
  [[nodiscard]] std::optional<unwind::Trampoline> find(unwind::ProcessNumber pid,
                                                       std::uint64_t address) const override;
  // The trampoline of that name; of several any.
  [[nodiscard]] const MapSymbol* trampoline(unwind::ProcessNumber pid,
                                            const std::string& name) const;

 private:
  struct Map {
    std::vector<MapSymbol> symbols;
    std::unordered_map<std::string, std::size_t> trampolines;
  };
  [[nodiscard]] const Map& load(unwind::ProcessNumber pid) const;

  const unwind::AddressSpaces& spaces_;
  Open open_;
  mutable std::unordered_map<unwind::ProcessNumber, Map> maps_;
};

}  // namespace pyinject::weave
