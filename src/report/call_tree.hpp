// The call tree of a profile: which functions call which, and what share of the samples each path
// has. Pure.
#pragma once

#include "pyinject/report/profile.hpp"
#include "report/selection.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pyinject::report {

struct TreeOptions {
  double least = 1;      // percent of all samples: paths with less are folded
  std::size_t most = 0;  // functions that one function calls; 0: all
};

// A function as called by those above it, which have a smaller depth.
struct TreeRow {
  std::size_t depth = 0;
  RowKey key;               // without a name: samples without such a function
  std::size_t folded = 0;   // not 0: the row stands for so many functions, which have no rows
  std::uint64_t self = 0;   // in the units of Table::weight
  std::uint64_t total = 0;  // including what it calls
};

struct Tree {
  std::string event;
  Unit unit = Unit::kSamples;
  std::uint64_t weight = 0;   // of all samples
  std::vector<TreeRow> rows;  // callers before what they call, the heaviest first
};

// A tree for each event that has samples; waits come last. Functions that --by or --mine exclude
// are left out; their samples count for their callers.
[[nodiscard]] std::vector<Tree> make_trees(const Profile& profile, const ViewOptions& options,
                                           const TreeOptions& tree);

}  // namespace pyinject::report
